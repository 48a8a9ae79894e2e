"""Networks with inputs, and what torch says of them in float64."""

import hashlib

import torch

from headwise.ops import Buffer, Layer, Network
from headwise.population import Keys, Store

SHAPES = {  # leaves, layers, copies
    "one layer": ((5,), (Layer(7),), 1),
    "narrow": ((3,), (Layer(64, "relu"), Layer(1)), 1),
    "odd": ((9, 2), (Layer(33, "tanh"), Layer(17, "elu"), Layer(5)), 1),
    "wide": ((70,), (Layer(256, "relu"), Layer(130, "tanh"), Layer(23)), 1),
    "copies": ((4, 3), (Layer(20, "elu"), Layer(6)), 3),
}
ROWS = (1, 37)


class Case:
    """A network with inputs, and what torch says of it in float64."""

    def __init__(self, shape, rows, seeds=(0, 1, 2), sees=None):
        leaves, layers, self.copies = SHAPES[shape]
        self.net = Network(leaves, layers, len(seeds), max(rows, 40), copies=self.copies, sees=sees)
        self.store = Store(Keys(seeds), [self.net])
        numbers = [
            torch.stack([torch.randn(rows, w, generator=torch.manual_seed(100 + s)) for s in seeds])
            for w in leaves
        ]
        self.x = [Buffer(len(seeds), rows, w, gradient=True) for w in leaves]
        for buffer, x in zip(self.x, numbers, strict=True):
            buffer.tensor[:, 0] = x
        slope = [
            torch.randn(self.copies, rows, layers[-1].width, generator=torch.manual_seed(200 + s))
            for s in seeds
        ]
        self.slope = torch.stack(slope)

    def play(self, copies=(), *, weights=True, add=False):
        rows = self.x[0].num_rows
        y = self.net.forward(self.x, copies).tensor.clone()
        self.net.rows(rows).gradient.copy_(self.slope)
        self.net.backward(self.x, copies, weights=weights, add=add)
        return y

    def exact(self):
        """Outputs and gradients by torch.nn.functional, layer after layer, member by member."""
        flat = self.store.parameters.tensor.double().requires_grad_()
        given = [x.tensor.double().requires_grad_() for x in self.x]
        found = []
        functions = {None: lambda x: x, "relu": torch.relu, "tanh": torch.tanh}
        functions["elu"] = torch.nn.functional.elu
        for p in range(flat.shape[0]):
            own = []
            for c in range(self.copies):
                h = torch.cat([x[p, 0] for x in given], -1)
                layers = zip(self.net.weights(flat), self.net.layers, strict=True)
                for (weight, bias), layer in layers:
                    h = torch.nn.functional.linear(h, weight[p, c].T, bias[p, c, 0])
                    h = functions[layer.activation](h)
                own.append(h)
            found.append(torch.stack(own))
        y = torch.stack(found)
        gradients = torch.autograd.grad(y, [flat, *given], self.slope.double())
        return y, gradients

    def gradients(self):
        return [self.store.parameters.gradient.clone(), *(x.gradient.clone() for x in self.x)]


def digest():
    """Of what the compiled way makes of all cases."""
    found = hashlib.sha256()
    for shape in SHAPES:
        for rows in ROWS:
            case = Case(shape, rows)
            for x in (case.play(), *case.gradients()):
                found.update(x.contiguous().numpy().tobytes())
    return found.hexdigest()
