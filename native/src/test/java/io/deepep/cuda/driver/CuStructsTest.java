package io.deepep.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.StructLayout;
import org.junit.jupiter.api.Test;

/**
 * The figures are sizeof and offsetof as a C compiler gives them for cuda.h of CUDA 13.0 on a
 * 64-bit machine.
 */
class CuStructsTest {
    @Test
    void launchConfig() {
        StructLayout layout = CuStructs.LAUNCH_CONFIG;
        assertThat(layout.byteSize()).isEqualTo(56);
        assertThat(layout.byteAlignment()).isEqualTo(8);
        assertThat(CuStructs.offset(layout, "gridDim")).isEqualTo(0);
        assertThat(CuStructs.offset(layout, "blockDim")).isEqualTo(12);
        assertThat(CuStructs.offset(layout, "sharedMemBytes")).isEqualTo(24);
        assertThat(CuStructs.offset(layout, "hStream")).isEqualTo(32);
        assertThat(CuStructs.offset(layout, "attrs")).isEqualTo(40);
        assertThat(CuStructs.offset(layout, "numAttrs")).isEqualTo(48);
    }

    @Test
    void launchAttribute() {
        StructLayout layout = CuStructs.LAUNCH_ATTRIBUTE;
        assertThat(layout.byteSize()).isEqualTo(72);
        assertThat(layout.byteAlignment()).isEqualTo(8);
        assertThat(CuStructs.offset(layout, "value")).isEqualTo(8);
    }

    @Test
    void memAllocationProp() {
        StructLayout layout = CuStructs.MEM_ALLOCATION_PROP;
        assertThat(layout.byteSize()).isEqualTo(32);
        assertThat(CuStructs.offset(layout, "requestedHandleTypes")).isEqualTo(4);
        assertThat(CuStructs.offset(layout, "location", "id")).isEqualTo(12);
        assertThat(CuStructs.offset(layout, "win32HandleMetaData")).isEqualTo(16);
        assertThat(CuStructs.offset(layout, "gpuDirectRdmaCapable")).isEqualTo(25);
    }

    @Test
    void memAccessDesc() {
        assertThat(CuStructs.MEM_ACCESS_DESC.byteSize()).isEqualTo(12);
        assertThat(CuStructs.offset(CuStructs.MEM_ACCESS_DESC, "flags")).isEqualTo(8);
    }

    @Test
    void ipcHandle() {
        assertThat(CuStructs.IPC_HANDLE.byteSize()).isEqualTo(64);
        assertThat(CuStructs.IPC_HANDLE.byteAlignment()).isEqualTo(1);
    }
}
