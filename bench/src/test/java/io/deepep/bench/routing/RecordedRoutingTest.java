package io.deepep.bench.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Routing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RecordedRoutingTest {
    @TempDir private Path folder;

    private Path npy(String name, String descr, long[] shape, byte[] data) throws IOException {
        String header = RoutingFiles.dictionary(descr, "False", RoutingFiles.tuple(shape));
        return Files.write(folder.resolve(name), RoutingFiles.npy(1, header, data));
    }

    private Path safetensors(String header, byte[]... data) throws IOException {
        return Files.write(folder.resolve("r.safetensors"), RoutingFiles.safetensors(header, data));
    }

    @Test
    void aMatrixIsSplitInOrder() throws IOException {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {5, 1}, 0, 1, 2, 3, -1);
        Routing routing = RecordedRouting.read(file, null).forRanks(2, 4);
        assertThat(routing.numTokens(0)).isEqualTo(2);
        assertThat(routing.numTokens(1)).isEqualTo(3);
        assertThat(routing.expert(0, 1, 0)).isEqualTo(1);
        assertThat(routing.expert(1, 0, 0)).isEqualTo(2);
        assertThat(routing.expert(1, 2, 0)).isEqualTo(-1);
        assertThat(routing.weight(1, 1, 0)).isEqualTo(1f);
    }

    @Test
    void ranksMayBeInTheFileAndWeightsInASecond() throws IOException {
        long[] shape = {2, 2, 2};
        Path idx = npy("i.npy", "<i4", shape, RoutingFiles.i32(0, 3, 0, 1, 2, 1, 3, 2));
        Path weights = npy("w.npy", "<f4", shape, RoutingFiles.f32(1, 2, 3, 4, 0.3f, 0.4f, 7, 8));
        RecordedRouting recorded = RecordedRouting.read(idx, weights);
        assertThat(recorded.numTopk()).isEqualTo(2);
        Routing routing = recorded.forRanks(2, 4);
        assertThat(routing.expert(1, 0, 0)).isEqualTo(2);
        assertThat(routing.weight(1, 0, 1)).isEqualTo(0.4f);
        assertThatThrownBy(() -> recorded.forRanks(4, 4))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("is for 2 ranks, but the group has numRanks=4");
    }

    @Test
    void safetensorsHoldBoth() throws IOException {
        Path file =
                safetensors(
                        """
                        {"topk_idx": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 8]},
                         "topk_weights": {"dtype": "F32", "shape": [1, 2], "data_offsets": [8, 16]}}""",
                        RoutingFiles.i32(1, 0),
                        RoutingFiles.f32(0.75f, 0.25f));
        Routing routing = RecordedRouting.read(file, null).forRanks(1, 2);
        assertThat(routing.expert(0, 0, 0)).isEqualTo(1);
        assertThat(routing.weight(0, 0, 0)).isEqualTo(0.75f);
    }

    @Test
    void theOnlyTensorOfItsKindIsTakenAndOfSeveralTheNamedOne() throws IOException {
        String one =
                """
                {"a": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 8]},
                 "b": {"dtype": "F32", "shape": [1, 2], "data_offsets": [8, 16]}""";
        String several =
                one
                        + """
                , "topk_idx": {"dtype": "I32", "shape": [1, 2], "data_offsets": [16, 24]},
                 "topk_weights": {"dtype": "F32", "shape": [1, 2], "data_offsets": [24, 32]}}""";
        byte[][] data = {
            RoutingFiles.i32(1, 0),
            RoutingFiles.f32(0.75f, 0.25f),
            RoutingFiles.i32(2, 3),
            RoutingFiles.f32(0.5f, 1)
        };
        Path file = safetensors(one + "}", data);
        Routing routing = RecordedRouting.read(file, null).forRanks(1, 4);
        assertThat(routing.expert(0, 0, 0)).isEqualTo(1);
        assertThat(routing.weight(0, 0, 0)).isEqualTo(0.75f);
        routing = RecordedRouting.read(safetensors(several, data), null).forRanks(1, 4);
        assertThat(routing.expert(0, 0, 0)).isEqualTo(2);
        assertThat(routing.weight(0, 0, 0)).isEqualTo(0.5f);
    }

    @Test
    void withoutWeightsAllCountTheSame() throws IOException {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {1, 4}, 0, 1, 2, 3);
        Routing routing = RecordedRouting.read(file, null).forRanks(1, 4);
        assertThat(routing.weight(0, 0, 3)).isEqualTo(0.25f);
    }

    /** Or all would count the same, and nobody be told. */
    @Test
    void weightsOfAnotherTypeAreRefused() throws IOException {
        Path file =
                safetensors(
                        """
                        {"topk_idx": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 8]},
                         "topk_weights": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [8, 12]}}""",
                        RoutingFiles.i32(1, 0),
                        new byte[4]);
        assertThatThrownBy(() -> RecordedRouting.read(file, null))
                .isInstanceOf(UsageException.class)
                .hasMessage(
                        "--routing: %s: topk_weights: dtype BF16 is not one of [I64, I32, F32]; convert it"
                                .formatted(file));
    }

    @Test
    void twoIntegerTensorsWithoutTheNameAreRefused() throws IOException {
        Path file =
                safetensors(
                        """
                        {"a": {"dtype": "I32", "shape": [1, 1], "data_offsets": [0, 4]},
                         "b": {"dtype": "I32", "shape": [1, 1], "data_offsets": [4, 8]}}""",
                        RoutingFiles.i32(1, 0));
        assertThatThrownBy(() -> RecordedRouting.read(file, null))
                .isInstanceOf(UsageException.class)
                .hasMessage(
                        "--routing: %s: no topk_idx, and not exactly one integer tensor among [a, b]"
                                .formatted(file));
    }

    @Test
    void shapesThatOverflowAreRefused() throws IOException {
        long[] huge = {1L << 31, 1L << 31, 1L << 31};
        Path numpy = npy("h.npy", "<i4", huge, RoutingFiles.i32(0));
        assertThatThrownBy(() -> RecordedRouting.read(numpy, null))
                .hasMessageContaining("needs 39614081257132168796771975168 bytes of data");
        Path tensors =
                safetensors(
                        """
                        {"topk_idx": {"dtype": "I32", "shape": [18446744073709551617, 1], "data_offsets": [0, 4]}}""",
                        RoutingFiles.i32(1));
        assertThatThrownBy(() -> RecordedRouting.read(tensors, null))
                .hasMessageContaining(tensors + ": topk_idx: I32[-1, 1] has a negative size");
        Path vector =
                safetensors(
                        """
                        {"topk_idx": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}}""",
                        RoutingFiles.i32(1));
        assertThatThrownBy(() -> RecordedRouting.read(vector, null))
                .hasMessage(
                        "--routing: " + vector + ": topk_idx: I32[1] is neither [T,K] nor [R,T,K]");
    }

    @Test
    void weightsThatAreNotFiniteAreRefused() throws IOException {
        Path idx = RoutingFiles.npyI64(folder.resolve("i.npy"), new long[] {2, 2}, -1, 1, 1, 0);
        Path unused = npy("u.npy", "<f4", new long[] {2, 2}, RoutingFiles.f32(Float.NaN, 1, 1, 1));
        assertThat(RecordedRouting.read(idx, unused).forRanks(1, 2).weight(0, 0, 0)).isNaN();
        for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
            Path weights = npy("w.npy", "<f4", new long[] {2, 2}, RoutingFiles.f32(1, 1, 1, bad));
            assertThatThrownBy(() -> RecordedRouting.read(idx, weights).forRanks(1, 2))
                    .isInstanceOf(UsageException.class)
                    .hasMessage(
                            "--routing: weights %s: F32[2, 2]: token 1, selection 1 is %s, which is not finite"
                                    .formatted(weights, bad));
        }
    }

    /** The file has holes: it takes no room on the disk. */
    @Test
    void aFileLargerThanTheHeapIsRefused() throws IOException {
        int tokens = 1 << 26;
        Path file = npy("large.npy", "<i8", new long[] {tokens, 2}, new byte[0]);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate(1), channel.size() + 16L * tokens - 1);
        }
        RecordedRouting routing = RecordedRouting.read(file, null);
        assertThatThrownBy(() -> routing.forRanks(2, 4))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("GiB of Java heap")
                .hasMessageContaining("DEEPEP_JAVA_OPTS");
    }

    @Test
    void theOptionOfAFileThatCannotBeReadIsNamed() throws IOException {
        Path idx = RoutingFiles.npyI64(folder.resolve("i.npy"), new long[] {1, 1}, 0);
        Path none = folder.resolve("none.npy");
        assertThatThrownBy(() -> RecordedRouting.read(idx, none))
                .hasMessage("--routing-weights: there is no file " + none);
        Path text = Files.writeString(folder.resolve("w.npy"), "0.5, 0.5 and so on");
        assertThatThrownBy(() -> RecordedRouting.read(idx, text))
                .hasMessageStartingWith("--routing-weights: " + text + ": not a .npy file");
        assertThatThrownBy(() -> RecordedRouting.read(folder, null))
                .hasMessageContaining("ends neither in .npy");
    }

    @Test
    void whatIsNoRoutingIsRefused() throws IOException {
        Path floats = npy("f.npy", "<f4", new long[] {1, 1}, RoutingFiles.f32(1));
        assertThatThrownBy(() -> RecordedRouting.read(floats, null))
                .hasMessageContaining("is not of integers");
        Path vector = RoutingFiles.npyI64(folder.resolve("v.npy"), new long[] {2}, 0, 1);
        assertThatThrownBy(() -> RecordedRouting.read(vector, null))
                .hasMessageContaining("neither [T,K] nor [R,T,K]");
        Path idx = RoutingFiles.npyI64(folder.resolve("i.npy"), new long[] {2, 1}, 0, 1);
        assertThatThrownBy(() -> RecordedRouting.read(idx, floats))
                .hasMessageContaining("must be F32 of the shape of the indices");
        Path text = Files.writeString(folder.resolve("r.txt"), "0 1");
        assertThatThrownBy(() -> RecordedRouting.read(text, null))
                .hasMessageContaining("ends neither in .npy");
        Path wide = npy("k.npy", "<i4", new long[] {1, 33}, new byte[4 * 33]);
        assertThatThrownBy(() -> RecordedRouting.read(wide, null))
                .hasMessageContaining("K=33 is not in [1, 32]");
        Path empty = RoutingFiles.npyI64(folder.resolve("e.npy"), new long[] {0, 2});
        assertThatThrownBy(() -> RecordedRouting.read(empty, null).forRanks(1, 2))
                .hasMessageContaining("has no tokens");
    }
}
