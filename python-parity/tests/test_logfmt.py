import torch

from deepep_reference import logfmt


def test_error():
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(64, 256, generator=generator).to(torch.bfloat16)
    seen = logfmt.round_trip(rows).double()
    bound = rows.double().abs() * logfmt.relative_error() + logfmt.absolute_error(rows)
    assert ((seen - rows.double()).abs() <= bound).all()
    assert not torch.equal(seen, rows.double())


def test_largest_and_smallest_are_hardly_off():
    rows = torch.linspace(1, 3, 128).to(torch.bfloat16).view(1, -1)
    seen = logfmt.round_trip(rows)
    torch.testing.assert_close(seen[0, [0, -1]], rows[0, [0, -1]].float(), rtol=1e-5, atol=0)


def test_zeros_signs_and_equal_magnitudes():
    rows = torch.tensor([2.5, -2.5, 0.0, 2.5] * 32).to(torch.bfloat16).view(1, -1)
    seen = logfmt.round_trip(rows)
    torch.testing.assert_close(seen, rows.float(), rtol=1e-6, atol=0)
    assert torch.equal(logfmt.round_trip(torch.zeros_like(rows)), torch.zeros(1, 128))


def test_far_below_the_largest():
    rows = torch.full((1, 128), 2.0**-60).to(torch.bfloat16)
    rows[0, 3] = 1.0
    rows[0, 4] = 0.75 * 2.0**-32
    seen = logfmt.round_trip(rows)
    assert seen[0, 0] == 0 and seen[0, 4] == 2.0**-32
    torch.testing.assert_close(seen[0, 3].item(), 1.0, rtol=1e-5, atol=0)


def test_what_is_not_finite_spoils_its_block_alone():
    rows = torch.ones(1, 256).to(torch.bfloat16)
    rows[0, 5] = float("inf")
    seen = logfmt.round_trip(rows)
    assert torch.isnan(seen[0, :128]).all() and (seen[0, 128:] == 1).all()
