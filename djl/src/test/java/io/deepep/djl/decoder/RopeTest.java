package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.CheckpointConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Angles by config.json, with transformers' values. */
class RopeTest {
    /** The only family that rotates a part of its channels. */
    private static final String GLM = "'model_type': 'glm4_moe', ";

    @TempDir Path folder;

    /** Three of eight channels are to be rotated, and two pairs are. */
    @Test
    void anOddNumberOfChannelsTakesOneMore() throws IOException {
        CheckpointConfig config =
                config(GLM + "'head_dim': 8, 'rope_theta': 1000, 'partial_rotary_factor': 0.4");
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            Rope rope =
                    new Rope(config, 8, GroupedQueryAttention.rotated(config), false, 2, manager);
            NDArray x = manager.create(new float[] {1, 1, 0, 0, 5, 6, 7, 8}, new Shape(1, 1, 8));
            Rope.Angles angles = rope.at(manager, manager.create(new long[] {1}));
            float slow = 0.01f; // 1000 to the power of -2/3
            assertThat(rope.rotate(x, angles).toFloatArray())
                    .containsExactly(
                            new float[] {
                                (float) Math.cos(1),
                                (float) Math.cos(slow),
                                (float) Math.sin(1),
                                (float) Math.sin(slow),
                                5,
                                6,
                                7,
                                8
                            },
                            within(1e-6f));
        }
    }

    @ParameterizedTest
    @CsvSource({"8, -0.5, -4", "8, 1.5, 12", "7, 1, 7", "8, 0, 0", "8, 1e12, 2147483647"})
    void channelsOutsideTheHeadAreRefused(int size, String part, int rotated) throws IOException {
        CheckpointConfig config =
                config(GLM + "'head_dim': " + size + ", 'partial_rotary_factor': " + part);
        assertThatThrownBy(() -> GroupedQueryAttention.rotated(config))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("partial_rotary_factor=")
                .hasMessageContaining("head_dim=" + size + " rotates " + rotated + " channels");
    }

    /** Without a factor, YaRN stretches to the longest sequence. */
    @Test
    void factorIsByTheLengthsWhereItIsMissing() throws IOException {
        String lengths =
                "'max_position_embeddings': 640, 'rope_scaling': {'type': 'yarn', 'mscale_all_dim': 1,"
                        + "'original_max_position_embeddings': 64, 'factor': ";
        double given = Rope.scoreFactor(config(lengths + "10}"));
        assertThat(given).isGreaterThan(1);
        assertThat(Rope.scoreFactor(config(lengths + "null}"))).isEqualTo(given);
    }

    /** YaRN makes all angles larger: by its factor, by two keys of DeepSeek's, or as is said. */
    @ParameterizedTest
    @CsvSource({"2, 0.5, 1.19447", "2, null, 1.13863", "null, 2, 1.13863"})
    void magnitudesByTwoKeys(String own, String all, float expected) throws IOException {
        assertMagnitude("'mscale': " + own + ", 'mscale_all_dim': " + all, expected);
        assertMagnitude("'mscale': 2, 'mscale_all_dim': 0.5, 'attention_factor': 0.7", 0.7f);
    }

    private void assertMagnitude(String keys, float expected) throws IOException {
        CheckpointConfig config =
                config(
                        "'max_position_embeddings': 64, 'rope_scaling': {'type': 'yarn', 'factor': 4, "
                                + keys
                                + "}");
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            Rope rope = new Rope(config, 8, 8, false, 1, manager);
            NDArray cosines = rope.at(manager, manager.create(new long[] {0})).cos();
            assertThat(cosines.toFloatArray()).containsOnly(new float[] {expected}, within(1e-5f));
        }
    }

    /** More than an array can have. */
    @Test
    void headsOfAbsurdSizesAreRefused() throws IOException {
        CheckpointConfig config = config("'rope_theta': 1000");
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            assertThatThrownBy(() -> new Rope(config, Integer.MAX_VALUE, 8, false, 2, manager))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("maxLength=2 must be at most 1, as a head has 2147483647 channels");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1"})
    void basesThatHaveNoPowersAreRefused(String theta) throws IOException {
        CheckpointConfig config = config("'rope_theta': " + theta);
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            assertThatThrownBy(() -> new Rope(config, 8, 8, false, 2, manager))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("rope_theta=" + theta);
        }
    }

    /** All angles would be NaN, and all answers the same token. */
    @ParameterizedTest
    @CsvSource({
        "factor, 0, 0.0 must be above 0",
        "factor, -4, -4.0 must be above 0",
        "factor, NaN, \"NaN\" is not a finite number",
        "factor, 1e400, 1e400 is not a finite number",
        "beta_fast, 0, 0.0 must be above 0",
        "beta_slow, -1, -1.0 must be above 0"
    })
    void yarnThatStretchesToNothingIsRefused(String key, String value, String complaint)
            throws IOException {
        CheckpointConfig config =
                config(
                        "'max_position_embeddings': 64, 'rope_scaling': {'type': 'yarn', '%s': %s}"
                                .formatted(key, value));
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            assertThatThrownBy(() -> new Rope(config, 8, 8, false, 2, manager))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("config.json: " + key + "=" + complaint);
        }
    }

    @Test
    void yarnWithoutALengthIsRefused() throws IOException {
        CheckpointConfig config = config("'rope_scaling': {'type': 'yarn', 'factor': 4}");
        try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
            assertThatThrownBy(() -> new Rope(config, 8, 8, false, 2, manager))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("has no max_position_embeddings");
        }
    }

    private CheckpointConfig config(String keys) throws IOException {
        Files.writeString(
                folder.resolve("config.json"),
                "{'hidden_size': 64, 'num_attention_heads': 4, ".replace('\'', '"')
                        + keys.replace('\'', '"')
                        + "}");
        return CheckpointConfig.read(folder);
    }
}
