package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the driver will read of a launch: its arguments and its shape. */
class LaunchBlocksTest {
    private static final int ATTRIBUTE_BYTES = 72;
    private final Arena arena = Arena.ofConfined();

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void argumentsAreAlignedAndPointedTo() {
        KernelParams params =
                KernelParams.arguments(arena, JAVA_INT, JAVA_LONG, JAVA_FLOAT, JAVA_LONG);
        assertThat(
                        new long[] {
                            params.offset(0), params.offset(1), params.offset(2), params.offset(3)
                        })
                .containsExactly(0, 8, 16, 24);
        for (int i = 0; i < 4; i++) {
            MemorySegment pointer = params.pointers().getAtIndex(ADDRESS, i);
            assertThat(pointer.address()).isEqualTo(params.segment().address() + params.offset(i));
        }
        params.setInt(params.offset(0), 7)
                .setLong(params.offset(1), 1L << 40)
                .setInt(params.offset(2), Float.floatToRawIntBits(0.5f));
        assertThat(params.segment().get(JAVA_INT, 0)).isEqualTo(7);
        assertThat(params.segment().get(JAVA_LONG, 8)).isEqualTo(1L << 40);
        assertThat(params.segment().get(JAVA_FLOAT, 16)).isEqualTo(0.5f);
    }

    @Test
    void structIsOneArgument() {
        KernelParams params = KernelParams.struct(arena, 40);
        assertThat(params.segment().byteSize()).isEqualTo(40);
        assertThat(params.pointers().get(ADDRESS, 0).address())
                .isEqualTo(params.segment().address());
        assertThatThrownBy(() -> params.setLong(40, 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void configHoldsShapeAndStream() {
        LaunchConfig config = new LaunchConfig(arena, 24, 512).sharedBytes(1024);
        MemorySegment struct = config.forStream(0x1234);
        assertThat(struct.asSlice(0, 28).toArray(JAVA_INT))
                .containsExactly(24, 1, 1, 512, 1, 1, 1024);
        assertThat(struct.get(JAVA_LONG, 32)).isEqualTo(0x1234);
    }

    @Test
    void launchThatOverlapsThePreviousSaysSo() {
        LaunchConfig config = new LaunchConfig(arena, 24, 512).overlapsPrevious();
        MemorySegment struct = config.forStream(0x1234);
        assertThat(struct.get(JAVA_INT, 48)).isEqualTo(1);
        MemorySegment attribute = struct.get(ADDRESS, 40).reinterpret(ATTRIBUTE_BYTES);
        assertThat(attribute.get(JAVA_INT, 0)).as("programmatic stream serialization").isEqualTo(6);
        assertThat(attribute.get(JAVA_INT, 8)).isEqualTo(1);
    }

    @Test
    void emptyGridIsRefused() {
        assertThatThrownBy(() -> new LaunchConfig(arena, 0, 32))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("0 must be at least 1");
    }
}
