package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/**
 * Byte by byte what NVSHMEM's own initialisers make of these structs, on a little-endian machine.
 */
class NvshmemStructsTest {
    @Test
    void uniqueId() {
        try (Arena arena = Arena.ofConfined()) {
            byte[] expected = new byte[128];
            put(expected, 0, 0x80, 0x00, 0x01);
            assertThat(NvshmemStructs.uniqueId(arena).toArray(ValueLayout.JAVA_BYTE))
                    .isEqualTo(expected);
        }
    }

    @Test
    void initAttributes() {
        try (Arena arena = Arena.ofConfined()) {
            byte[] expected = new byte[144];
            put(expected, 0, 0x90, 0x00, 0x01);
            put(expected, 16, 0x80, 0x00, 0x01);
            put(expected, 24, 0x18, 0x00, 0x01);
            assertThat(NvshmemStructs.initAttr(arena).toArray(ValueLayout.JAVA_BYTE))
                    .isEqualTo(expected);
        }
        assertThat(NvshmemStructs.UNIQUE_ID.byteAlignment()).isEqualTo(4);
        assertThat(NvshmemStructs.INIT_ATTR.byteAlignment()).isEqualTo(8);
    }

    private static void put(byte[] bytes, int at, int... values) {
        for (int i = 0; i < values.length; i++) {
            bytes[at + i] = (byte) values[i];
        }
    }
}
