import pytest
import torch

from deepep_reference import fp8

ALL_BF16 = torch.arange(2**16).to(torch.int32).to(torch.int16).view(torch.bfloat16)
ALL_CODES = torch.arange(256).to(torch.uint8)


def finite(values):
    return values[torch.isfinite(values.float())]


def test_known_values():
    codes = torch.tensor([0x00, 0x01, 0x07, 0x08, 0x38, 0x3C, 0x7E, 0x80, 0xC4], dtype=torch.uint8)
    values = torch.tensor([0, 2**-9, 7 * 2**-9, 2**-6, 1.0, 1.5, 448.0, -0.0, -3.0])
    assert torch.equal(fp8.decode(codes), values)
    assert torch.equal(fp8.encode(values), codes)


def test_every_code_survives():
    assert torch.equal(fp8.encode(fp8.decode(ALL_CODES)) & 0x7F, ALL_CODES & 0x7F)
    numbers = ALL_CODES[(ALL_CODES & 0x7F) != 0x7F]
    assert torch.equal(fp8.encode(fp8.decode(numbers)), numbers)


def test_nearest_and_ties_to_even():
    values = fp8.decode(torch.arange(0x7F).to(torch.uint8)).double()
    middle = (values[1:] + values[:-1]) / 2
    even = torch.arange(0x7E) + torch.arange(0x7E) % 2
    assert torch.equal(fp8.encode(middle.float()), even.to(torch.uint8))
    below, above = middle * (1 - 2**-20), middle * (1 + 2**-20)
    assert torch.equal(fp8.encode(below.float()), torch.arange(0x7E).to(torch.uint8))
    assert torch.equal(fp8.encode(above.float()), torch.arange(1, 0x7F).to(torch.uint8))


def test_large_numbers_saturate_and_nan_stays():
    values = torch.tensor([449.0, 1e30, float("inf"), -float("inf"), float("nan")])
    assert fp8.encode(values).tolist() == [0x7E, 0x7E, 0x7E, 0xFE, 0x7F]


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="this PyTorch has no FP8 types")
def test_same_as_pytorch():
    values = ALL_BF16.float()
    values = values[values.abs() <= 448]
    theirs = values.to(torch.float8_e4m3fn)
    assert torch.equal(fp8.encode(values), theirs.view(torch.uint8))
    decoded = ALL_CODES.view(torch.float8_e4m3fn).float()
    assert torch.equal(fp8.decode(ALL_CODES).nan_to_num(), decoded.nan_to_num())


def rows_of(amax):
    """A row of one group for each largest magnitude."""
    rows = torch.zeros(len(amax), fp8.GROUP, dtype=torch.bfloat16)
    rows[:, 17] = amax
    return rows


def test_scales():
    cast = fp8.cast_rows(rows_of(torch.tensor([448.0, 1.0, 0.0]).to(torch.bfloat16)))
    smallest = torch.tensor(1e-4) * torch.tensor(1 / 448)
    assert cast.scales.flatten().tolist() == [1.0, torch.tensor(1 / 448).item(), smallest.item()]
    assert cast.codes[:, 17].tolist() == [0x7E, 0x7E, 0]


def test_rounded_scales_are_the_least_powers_of_two_that_suffice():
    """Also where f32 arithmetic could err: for the largest magnitude of every BF16."""
    amax = finite(ALL_BF16[:0x7F80])
    scales = fp8.cast_rows(rows_of(amax), round_scale=True).scales.double().flatten()
    exact = amax.double().clamp(min=torch.tensor(1e-4).double()) / 448
    assert (scales >= exact).all() and (scales / 2 < exact).all()
    assert torch.equal(torch.log2(scales), torch.log2(scales).round())


@pytest.mark.parametrize("round_scale", [False, True])
def test_error_of_cast(round_scale):
    rows = finite(ALL_BF16)[: 508 * 128].view(-1, 256)
    cast = fp8.cast_rows(rows, round_scale)
    scales = cast.scales.double().repeat_interleave(fp8.GROUP, dim=1)
    error = (fp8.decode(cast.codes).double() * scales - rows.double()).abs()
    assert (error <= rows.double().abs() * (2**-4 + 2**-20) + scales * 2**-10).all()


def test_packed_scales():
    scales = torch.tensor([[2.0**-127 * 2, 1.0, 2.0, 2.0**127, 0.5]])
    packed = fp8.pack_ue8m0(scales)
    assert packed.dtype == torch.int32
    assert packed.view(torch.uint8).tolist() == [[1, 127, 128, 254, 126, 0, 0, 0]]


def test_no_rows():
    cast = fp8.cast_rows(torch.zeros(0, 640).bfloat16(), round_scale=True)
    assert cast.codes.shape == (0, 640) and cast.scales.shape == (0, 5)
    assert fp8.pack_ue8m0(cast.scales).shape == (0, 2)


def test_what_is_not_a_power_of_two_is_not_packed():
    with pytest.raises(ValueError, match="power of two"):
        fp8.pack_ue8m0(torch.tensor([[1.5]]))
