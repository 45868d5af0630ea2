package io.deepep.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import org.junit.jupiter.api.Test;

/** Addresses only: nothing here is on a GPU, or needs JCuda's native library. */
class JCudaTensorsTest {
    private static final Device GPU = Device.cuda(3);
    private static final CUdeviceptr MEMORY = new CUdeviceptr().withByteOffset(0x7f00_0000_1000L);

    @Test
    void tensorLiesWhereThePointerPoints() {
        Tensor tensor =
                JCudaTensors.tensorOf(
                        GPU, MEMORY.withByteOffset(0x40), 2 * 3 * 8 * 2, DType.BF16, 2, 3, 8);
        assertThat(tensor.address()).isEqualTo(0x7f00_0000_1040L);
        assertThat(tensor.device()).isEqualTo(GPU);
        assertThat(tensor.shape()).containsExactly(2, 3, 8);
        assertThat(tensor.isContiguous()).isTrue();
    }

    @Test
    void pointerPointsToTheFirstElement() {
        Tensor rows = JCudaTensors.tensorOf(GPU, MEMORY, 64 * 4, DType.F32, 4, 16);
        CUdeviceptr third = JCudaTensors.pointerTo(rows.select(0, 2));
        assertThat(NativePointers.address(third)).isEqualTo(rows.address() + 2 * 16 * 4);
        assertThat(JCudaTensors.tensorOf(GPU, third, 64, DType.F32, 16).address())
                .isEqualTo(rows.address() + 2 * 16 * 4);
    }

    @Test
    void tensorWithAnEmptyDimensionHasAnAddress() {
        Tensor none = JCudaTensors.tensorOf(GPU, MEMORY, 0, DType.BF16, 0, 128);
        assertThat(none.numElements()).isZero();
        assertThat(none.stride(0)).isEqualTo(128);
    }

    /** An object that the pointer's memory hangs on must not go before the tensor. */
    @Test
    void tensorKeepsThePointer() {
        Tensor tensor = JCudaTensors.tensorOf(GPU, MEMORY, 64, DType.F32, 16);
        assertThat(tensor.owner()).isSameAs(MEMORY);
        assertThat(tensor.slice(0, 4, 4).owner()).isSameAs(MEMORY);
    }

    @Test
    void memoryPastTheEndIsRefused() {
        assertThatThrownBy(() -> JCudaTensors.tensorOf(GPU, MEMORY, 63, DType.F32, 16))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("63");
    }

    @Test
    void pointersToNothingOrToJavaAreRefused() {
        for (Pointer pointer :
                new Pointer[] {
                    new CUdeviceptr(),
                    new Pointer(),
                    Pointer.to(new float[16]),
                    Pointer.to(ByteBuffer.allocateDirect(64)).withByteOffset(16)
                }) {
            assertThatThrownBy(() -> JCudaTensors.tensorOf(GPU, pointer, 64, DType.F32, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("is not device memory")
                    .hasMessageContaining("withByteOffset");
        }
    }

    @Test
    void hostTensorHasNoDevicePointer() {
        try (Arena arena = Arena.ofConfined()) {
            Tensor tensor = Tensor.allocate(arena, DType.F32, 4);
            assertThatThrownBy(() -> JCudaTensors.pointerTo(tensor))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("is on the host");
        }
    }
}
