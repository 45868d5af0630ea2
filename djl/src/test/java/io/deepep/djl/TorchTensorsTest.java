package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Bf16;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;
import io.deepep.host.HostStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TorchTensorsTest {
    private final NDManager manager = Moe.manager();

    @AfterEach
    void close() {
        manager.close();
    }

    @Test
    void tensorIsTheArraysMemory() {
        NDArray array = manager.arange(24f).reshape(2, 3, 4);
        Tensor tensor = TorchTensors.tensorOf(array);
        assertThat(tensor.dtype()).isEqualTo(DType.F32);
        assertThat(tensor.shape()).containsExactly(2, 3, 4);
        assertThat(element(tensor, 1, 2, 3)).isEqualTo(23);
        TorchTensors.arrayOf(manager, tensor).set(new NDIndex(1, 2, 3), -1);
        assertThat(array.getFloat(1, 2, 3)).isEqualTo(-1);
        array.muli(3);
        assertThat(element(tensor, 1, 2, 3)).isEqualTo(-3);
    }

    @Test
    void stridesAndOffsetsAreKept() {
        NDArray array = manager.arange(24f).reshape(4, 6);
        Tensor transposed = TorchTensors.tensorOf(array.transpose());
        assertThat(transposed.shape()).containsExactly(6, 4);
        assertThat(transposed.strides()).containsExactly(1, 6);
        assertThat(element(transposed, 5, 3)).isEqualTo(23);
        Tensor rows = TorchTensors.tensorOf(array.get("2:4"));
        assertThat(element(rows, 0, 0)).isEqualTo(12);
        assertThat(rows.capacityBytes()).isEqualTo(12 * Float.BYTES);
        NDArray back = TorchTensors.arrayOf(manager, transposed);
        assertThat(back.getShape()).isEqualTo(new Shape(6, 4));
        assertThat(back.toFloatArray()).containsExactly(array.transpose().toFloatArray());
    }

    private float element(Tensor tensor, long... index) {
        return Moe.element(manager, tensor, index);
    }

    /** The tensor shares the memory's ownership, so closing the array frees nothing. */
    @Test
    void tensorOutlivesTheArray() {
        Tensor tensor;
        try (NDManager scope = manager.newSubManager()) {
            tensor = TorchTensors.tensorOf(scope.full(new Shape(1 << 20), 7f));
        }
        NDArray other = manager.zeros(new Shape(1 << 20));
        assertThat(element(tensor, (1 << 20) - 1)).isEqualTo(7);
        assertThat(tensor.address()).isNotEqualTo(TorchTensors.tensorOf(other).address());
    }

    /** Without a garbage collection. */
    @Test
    void borrowedMemoryGoesWithItsArray() throws IOException {
        long before = Moe.residentBytes();
        for (int i = 0; i < 10; i++) {
            try (NDManager scope = manager.newSubManager()) {
                NDArray array = scope.full(new Shape(16 << 20), 7f);
                Tensor tensor = TorchTensors.borrow(array);
                assertThat(element(tensor, (16 << 20) - 1)).isEqualTo(7);
            }
        }
        assertThat(Moe.residentBytes() - before).isLessThan(5 * (64L << 20));
    }

    @Test
    void arrayIsTheTensorsMemory() {
        try (Arena arena = Arena.ofConfined();
                NDManager onCpu = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            Tensor tensor = Tensor.allocate(arena, DType.I64, 3, 2);
            NDArray array = TorchTensors.arrayOf(onCpu, tensor);
            assertThat(array.getDataType()).isEqualTo(DataType.INT64);
            tensor.setLong(5, 2, 1);
            assertThat(array.getLong(2, 1)).isEqualTo(5);
            array.addi(1);
            assertThat(tensor.getLong(2, 1)).isEqualTo(6);
            assertThat(TorchTensors.tensorOf(array).address()).isEqualTo(tensor.address());
        }
    }

    /** BF16 and FP8, which DJL has no names for, compute and convert. */
    @Test
    void bf16ArraysCompute() {
        NDArray values = manager.arange(12f).reshape(3, 4).div(7);
        NDArray bf16 = TorchTensors.empty(manager, DType.BF16, 3, 4);
        TorchTensors.cast(values, bf16);
        Tensor tensor = TorchTensors.tensorOf(bf16);
        for (int i = 0; i < 12; i++) {
            assertThat(element(tensor, i / 4, i % 4))
                    .isEqualTo(Bf16.toFloat(Bf16.fromFloat(i / 7f)));
        }
        NDArray squares = bf16.matMul(bf16.transpose()).toType(DataType.FLOAT32, false);
        assertThat(squares.getFloat(0, 0)).isCloseTo(14 / 49f, within(0.01f));
    }

    @Test
    void fp8IsRoundedAsOurs() {
        float[] given = {0, 0.07f, -1.3f, 17, 448, 447, -0.001f, 100};
        NDArray fp8 = TorchTensors.empty(manager, DType.FP8_E4M3, given.length);
        TorchTensors.cast(manager.create(given), fp8);
        Tensor tensor = TorchTensors.tensorOf(fp8);
        assertThat(tensor.dtype()).isEqualTo(DType.FP8_E4M3);
        for (int i = 0; i < given.length; i++) {
            assertThat(element(tensor, i)).isEqualTo(Fp8E4m3.toFloat(Fp8E4m3.fromFloat(given[i])));
        }
        assertThat(fp8.toType(DataType.FLOAT32, false).toFloatArray()[3]).isEqualTo(16);
    }

    @ParameterizedTest
    @EnumSource(DType.class)
    void everyTypeGoesThereAndBack(DType dtype) {
        Tensor tensor = TorchTensors.tensorOf(TorchTensors.empty(manager, dtype, 2, 5));
        assertThat(tensor.dtype()).isEqualTo(dtype);
        assertThat(tensor.capacityBytes()).isEqualTo(10L * dtype.sizeBytes());
        Tensor again = TorchTensors.tensorOf(TorchTensors.arrayOf(manager, tensor));
        assertThat(again.dtype()).isEqualTo(dtype);
        assertThat(again.address()).isEqualTo(tensor.address());
    }

    @Test
    void emptyArraysHaveTensors() {
        Tensor none = TorchTensors.tensorOf(TorchTensors.empty(manager, DType.BF16, 0, 128));
        assertThat(none.shape()).containsExactly(0, 128);
        assertThat(TorchTensors.arrayOf(manager, none).getShape()).isEqualTo(new Shape(0, 128));
    }

    /** Reading through it would end the process. */
    @Test
    void freedMemoryHasNoArray() {
        Tensor tensor;
        try (Arena brief = Arena.ofShared()) {
            tensor = Tensor.allocate(brief, DType.F32, 2, 3);
        }
        assertThatThrownBy(() -> TorchTensors.arrayOf(manager, tensor))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("F32[2, 3] on host is freed");
    }

    @Test
    void otherTypesAndShapesAreRefused() {
        assertThatThrownBy(
                        () -> TorchTensors.tensorOf(manager.zeros(new Shape(2), DataType.FLOAT16)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("FLOAT16")
                .hasMessageContaining("cast it first");
        assertThatThrownBy(
                        () ->
                                TorchTensors.cast(
                                        manager.zeros(new Shape(2, 3)),
                                        manager.zeros(new Shape(3, 2))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("(2, 3)");
    }

    /** The same value wherever the array lies, and one array for each value. */
    @Test
    void scalarsCompute() {
        NDArray scalar = TorchTensors.scalar(0.3f);
        assertThat(TorchTensors.scalar(0.3f)).isSameAs(scalar);
        assertThat(scalar.getShape().dimension()).isZero();
        try (NDManager own = manager.newSubManager()) {
            NDArray x = own.create(new float[] {1, -7, 1e30f, 0.1f});
            assertThat(x.mul(scalar).toFloatArray()).isEqualTo(x.mul(0.3f).toFloatArray());
            assertThat(x.maximum(scalar).toFloatArray()).isEqualTo(x.maximum(0.3f).toFloatArray());
            assertThat(x.mul(scalar).getDevice()).isEqualTo(manager.getDevice());
        }
        assertThat(scalar.getFloat()).as("after the manager is closed").isEqualTo(0.3f);
    }

    @Test
    void memoryIsSeenAsAnotherType() {
        NDArray array = manager.create(new float[] {1, 2, 3, 4, 5, 6}, new Shape(3, 2));
        NDArray longs = TorchTensors.viewAs(array, DType.I64, 3);
        assertThat(longs.toLongArray())
                .containsExactly(0x40000000_3F800000L, 0x40800000_40400000L, 0x40C00000_40A00000L);
        assertThatThrownBy(() -> TorchTensors.viewAs(array, DType.I64, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("as many bytes");
        assertThatThrownBy(() -> TorchTensors.viewAs(array.transpose(), DType.I64, 3))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("contiguous");
    }

    /** Where there are no GPUs this is about the CPU. */
    @Test
    void tensorsLieWhereTheirArraysDo() {
        NDArray array = manager.ones(new Shape(2, 3));
        Tensor tensor = TorchTensors.tensorOf(array);
        assertThat(tensor.device()).isEqualTo(TorchDevices.deviceOf(manager.getDevice()));
        assertThat(TorchTensors.arrayOf(manager, tensor).getDevice()).isEqualTo(array.getDevice());
    }

    @Test
    void cpuWorkIsDoneWhenItReturns() {
        assertThat(TorchStreams.between(Device.cpu())).isEqualTo(CallOptions.sync());
        assertThat(TorchStreams.after(Device.cpu())).isEqualTo(CallOptions.async());
        assertThatThrownBy(() -> TorchStreams.current(Device.cpu()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("no streams");
        try (HostStream stream = new HostStream("host")) {
            assertThatThrownBy(() -> TorchStreams.use(stream))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("cannot be current");
        }
    }
}
