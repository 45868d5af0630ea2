package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.memory.IpcHandle;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.posix.PosixFd;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

class HandlesTest {
    @Test
    void ipcHandleSurvivesTheWire() {
        byte[] bytes = new byte[IpcHandle.NUM_BYTES];
        for (int i = 0; i < 64; i++) {
            bytes[i] = (byte) (i * 3);
        }
        ByteBuffer.wrap(bytes, 64, 24)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(77)
                .putLong(512)
                .putLong(4096);
        IpcHandle handle = IpcHandle.fromBytes(bytes);
        assertThat(handle.numBytes()).isEqualTo(4096);
        assertThat(handle.toBytes()).isEqualTo(bytes);
    }

    @Test
    void ipcHandleOfAnotherSizeIsRefused() {
        assertThatThrownBy(() -> IpcHandle.fromBytes(new byte[64]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("bytes.length=64 is not 88");
    }

    @Test
    void descriptorOfNoProcessIsRefusedWithCure() {
        // Beyond the largest pid Linux can be configured for.
        assertThatThrownBy(() -> PosixFd.fetch(Integer.MAX_VALUE, 0))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("pidfd_open")
                .hasMessageContaining("one PID namespace");
    }

    @Test
    void descriptorThatIsNotOpenIsRefused() {
        assertThatThrownBy(() -> PosixFd.close(1 << 20))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
