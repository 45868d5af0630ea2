package io.deepep.bench.routing;

import static io.deepep.bench.routing.RoutingFiles.dictionary;
import static io.deepep.bench.routing.RoutingFiles.i64;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class NpyReaderTest {
    private static NamedArray read(byte[] file) {
        return NpyReader.read("f.npy", ByteBuffer.wrap(file));
    }

    private static NamedArray read(int version, String dictionary, byte[] data) {
        return read(RoutingFiles.npy(version, dictionary, data));
    }

    private static AbstractThrowableAssert<?, ?> assertRefused(
            int version, String dictionary, byte[] data) {
        return assertThatThrownBy(() -> read(version, dictionary, data))
                .isInstanceOf(RoutingFileException.class);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void allVersionsAreRead(int version) {
        byte[] data = i64(5, -1, 1L << 40, 7, 8, 9);
        NamedArray array = read(version, dictionary("<i8", "False", "(2, 3)"), data);
        assertThat(array.shape()).containsExactly(2, 3);
        assertThat(array.type()).isEqualTo(NamedArray.Type.I64);
        assertThat(array.integerAt(1)).isEqualTo(-1);
        assertThat(array.integerAt(2)).isEqualTo(1L << 40);
        assertThat(array.integerAt(5)).isEqualTo(9);
    }

    @Test
    void shortIntegersAndFloatsAreRead() {
        NamedArray ints = read(1, dictionary("<i4", "False", "(2,)"), RoutingFiles.i32(3, -1));
        assertThat(ints.integerAt(0)).isEqualTo(3);
        assertThat(ints.integerAt(1)).isEqualTo(-1);
        byte[] numbers = RoutingFiles.f32(0.25f, -2f);
        NamedArray floats = read(1, dictionary("<f4", "False", "(1, 2)"), numbers);
        assertThat(floats.floatAt(0)).isEqualTo(0.25f);
        assertThat(floats.floatAt(1)).isEqualTo(-2f);
    }

    @Test
    void emptyArraysAndPaddedHeadersAreRead() {
        String padded = dictionary("<i8", "False", "(0, 8)") + " ".repeat(40);
        assertThat(read(1, padded, new byte[0]).shape()).containsExactly(0, 8);
    }

    @Test
    void fortranOrderIsRefusedWithTheCure() {
        assertRefused(1, dictionary("<i8", "True", "(1, 1)"), i64(1))
                .hasMessage(
                        "f.npy: fortran_order=True is not supported; save numpy.ascontiguousarray(array)");
    }

    @ParameterizedTest
    @ValueSource(strings = {">i8", "<f8", "|b1", "<u4", "|O"})
    void otherTypesAreRefused(String descr) {
        assertRefused(1, dictionary(descr, "False", "(1, 1)"), i64(1))
                .hasMessageContaining("dtype '" + descr + "' is not one of");
    }

    @Test
    void dataThatDoesNotFitTheShapeIsRefused() {
        assertRefused(1, dictionary("<i8", "False", "(2, 2)"), i64(1, 2, 3))
                .hasMessageContaining("f.npy: I64[2, 2] needs 32 bytes of data, the file has 24");
    }

    @Test
    void brokenFilesAreRefusedWhereverTheyEnd() {
        byte[] file = RoutingFiles.npy(2, dictionary("<i8", "False", "(1, 1)"), i64(1));
        for (int length = 0; length < file.length; length++) {
            byte[] cut = Arrays.copyOf(file, length);
            assertThatThrownBy(() -> read(cut)).isInstanceOf(RoutingFileException.class);
        }
    }

    @Test
    void otherVersionsAndHeadersAreRefused() {
        assertRefused(4, dictionary("<i8", "False", "(1, 1)"), i64(1))
                .hasMessageContaining(".npy version 4 is not one of 1, 2, 3");
        assertRefused(1, "{'descr': '<i8', 'fortran_order': False}", i64(1))
                .hasMessageContaining("the header has no valid 'shape'");
        assertRefused(1, dictionary("<i8", "False", "(one, 1)"), i64(1))
                .hasMessageContaining("is not a tuple of numbers");
    }
}
