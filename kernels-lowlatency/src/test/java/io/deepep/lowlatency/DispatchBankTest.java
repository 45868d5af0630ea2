package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import org.junit.jupiter.api.Test;

/** The tensors of a bank, here of 3 experts with room for 12 rows of 5 groups. */
class DispatchBankTest {
    private int numAllocated;
    private final DispatchBank bank =
            new DispatchBank(new LowLatencyLimits(6, 640, 2, 6), 2, this::allocate) {};

    private Tensor allocate(long numBytes, DType dtype, long... shape) {
        numAllocated++;
        Tensor tensor = HostTensors.allocate(dtype, shape);
        assertThat(tensor.capacityBytes()).isEqualTo(numBytes);
        return tensor;
    }

    @Test
    void rowsOfAllFormatsShareTheLargestMemory() {
        int before = numAllocated;
        Tensor fp8 = bank.recvX(LowLatencyFormat.FP8, 640);
        assertThat(fp8.dtype()).isEqualTo(DType.FP8_E4M3);
        assertThat(fp8.shape()).containsExactly(3, 12, 640);
        Tensor bf16 = bank.recvX(LowLatencyFormat.BF16, 640);
        assertThat(bf16.dtype()).isEqualTo(DType.BF16);
        assertThat(bf16.shape()).containsExactly(3, 12, 640);
        assertThat(numAllocated).isEqualTo(before + 2);
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            assertThat(bank.recvX(format, 640).address()).isEqualTo(bf16.address());
            assertThat(bank.recvX(format, 640).isContiguous()).isTrue();
        }
        Tensor narrow = bank.recvX(LowLatencyFormat.BF16, 72);
        assertThat(narrow.address()).isEqualTo(bf16.address());
        assertThat(narrow.shape()).containsExactly(3, 12, 72);
        assertThat(narrow.isContiguous()).isTrue();
        assertThat(numAllocated).isEqualTo(before + 2);
    }

    @Test
    void scalesAreColumnMajor() {
        assertThat(bank.recvScales(LowLatencyFormat.BF16, 640)).isNull();
        Tensor scales = bank.recvScales(LowLatencyFormat.FP8, 640);
        assertThat(scales.dtype()).isEqualTo(DType.F32);
        assertThat(scales.shape()).containsExactly(3, 12, 5);
        assertThat(scales.strides()).containsExactly(5 * 12, 1, 12);
        Tensor packed = bank.recvScales(LowLatencyFormat.FP8_UE8M0, 640);
        assertThat(packed.dtype()).isEqualTo(DType.I32);
        assertThat(packed.shape()).containsExactly(3, 12, 2);
        assertThat(packed.strides()).containsExactly(2 * 12, 1, 12);
        Tensor narrow = bank.recvScales(LowLatencyFormat.FP8, 256);
        assertThat(narrow.shape()).containsExactly(3, 12, 2);
        assertThat(narrow.strides()).containsExactly(2 * 12, 1, 12);
    }
}
