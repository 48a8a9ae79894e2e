"""The benchmark that teaches a network what the scripted player does."""

from benchmarks.imitation import scores


def test_a_network_learns_what_it_is_told():
    first, last = scores("dependent", "hybrid", updates=(1, 600), episodes=64)
    assert first < 0.1
    assert last > 0.5
