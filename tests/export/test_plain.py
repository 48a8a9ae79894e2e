import numpy as np
import torch
from scipy import special

from headwise.export.plain import PlainOperations, inverse_erf
from headwise.population.keys import to_normal


def test_the_inverse_error_function_is_good_to_the_last_digits_of_float32():
    # All that a 24-bit uniform can become, in steps of 101: the ends are within 6e-8 of -1 and 1.
    x = (torch.arange(0, 2**24, 101) / 2**24).mul(2.0).add(2.0**-24 - 1.0)
    truth = special.erfinv(x.double().numpy())
    np.testing.assert_allclose(inverse_erf(x).numpy(), truth, rtol=3e-7, atol=1e-12)
    ends = torch.tensor([-1.0 + 2.0**-24, 0.0, 1.0 - 2.0**-24])
    np.testing.assert_allclose(inverse_erf(ends), torch.erfinv(ends), rtol=3e-7)


def test_normal_numbers_are_made_of_plain_operations_only_while_it_is_entered():
    uniform = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    before = to_normal(uniform)
    with PlainOperations():
        within = to_normal(uniform)
    assert torch.equal(to_normal(uniform), before)
    assert not torch.equal(within, before)
    torch.testing.assert_close(within, before, rtol=1e-6, atol=1e-6)
