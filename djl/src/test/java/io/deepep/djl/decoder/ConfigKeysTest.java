package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.MoeLayers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Keys of config.json that change what a model computes, with other values or left out. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConfigKeysTest {
    private static final int NEW_TOKENS = 32;
    private static final int ROPE = 8;

    @TempDir Path folder;

    /** As by transformers' defaults. */
    @ParameterizedTest
    @CsvSource({"qwen2_moe, false", "qwen3_moe, false", "deepseek_v3, true", "glm4_moe, true"})
    void withoutNormTopkProb(String family, boolean normalized) throws IOException {
        copy(family, config -> config.remove("norm_topk_prob"));
        assertThat(MoeLayers.of(CheckpointConfig.read(folder)).rule().normalized())
                .isEqualTo(normalized);
    }

    /** Keys that a model's author may leave out have transformers' values for the family. */
    @ParameterizedTest
    @CsvSource({
        "mixtral, rms_norm_eps, 1e-5",
        "mixtral, rope_theta, 1e6",
        "mixtral, num_key_value_heads, 8",
        "mixtral, sliding_window, -1",
        "qwen3_moe, num_key_value_heads, 4",
        "qwen3_moe, rms_norm_eps, -1",
        "deepseek_v2, n_shared_experts, 2",
        "deepseek_v2, routed_scaling_factor, -1",
        "deepseek_v3, routed_scaling_factor, 2.5",
        "deepseek_v3, n_group, 8",
        "deepseek_v3, topk_group, 4",
        "deepseek_v3, n_shared_experts, 1",
        "deepseek_v3, first_k_dense_replace, 3",
        "deepseek_v3, q_lora_rank, 1536",
        "glm4_moe, rms_norm_eps, 1e-5",
        "glm4_moe, partial_rotary_factor, 0.5",
        "glm4_moe, n_shared_experts, 1",
        "glm4_moe, first_k_dense_replace, 1",
        "gpt_oss, sliding_window, 128",
        "gpt_oss, rms_norm_eps, 1e-5",
        "gpt_oss, rope_theta, 150000",
        "gpt_oss, head_dim, 64"
    })
    void withoutAKey(String family, String key, double value) throws IOException {
        copy(family, config -> config.remove(key));
        assertThat(CheckpointConfig.read(folder).decimal(key, -1)).isEqualTo(value);
    }

    @ParameterizedTest
    @CsvSource({"mixtral, 1024, true", "mixtral, 1025, false", "gpt_oss, 8, true"})
    void lowLatencyModeIsUsedWhereItCanBe(String family, int maxTokens, boolean used)
            throws IOException {
        MoeLayers layers = MoeLayers.of(CheckpointConfig.read(Golden.folder(family)));
        assertThat(layers.lowLatencyLimits(maxTokens).isPresent()).isEqualTo(used);
    }

    /** Null is no missing key: the model has no such thing. */
    @Test
    void withoutAWindow() throws IOException {
        copy("gpt_oss", config -> config.add("sliding_window", JsonNull.INSTANCE));
        assertThat(CheckpointConfig.read(folder).number("sliding_window", 0)).isZero();
    }

    @ParameterizedTest
    @CsvSource({"qwen3_moe, decoder_sparse_step", "deepseek_v2, moe_layer_freq"})
    void stepsOfNoLayersAreRefused(String family, String key) throws IOException {
        copy(family, config -> config.addProperty(key, 0));
        MoeLayers layers = MoeLayers.of(CheckpointConfig.read(folder));
        assertThatThrownBy(() -> layers.isSparse(1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(key + "=0 must be at least 1");
    }

    /** gpt-oss has a key for each number of its activation. */
    @ParameterizedTest
    @ValueSource(strings = {"swiglu_alpha", "swiglu_limit"})
    void activationOfGptOss(String key) throws Exception {
        copy("gpt_oss", config -> config.addProperty(key, 0.5));
        assertThat(logits(folder)).isNotEqualTo(logits("gpt_oss"));
    }

    private static float[] logits(String family) throws Exception {
        return logits(Golden.folder(family));
    }

    private static float[] logits(Path folder) throws Exception {
        try (DecoderService service = DecoderService.start(folder, 2, DecoderOptions.DEFAULT)) {
            return service.logits(List.of(new long[] {52, 60})).getFirst();
        }
    }

    /** Of these, what the checkpoint says is the family's default. */
    @ParameterizedTest
    @CsvSource({
        "deepseek_v3, routed_scaling_factor n_shared_experts",
        "glm4_moe, n_shared_experts partial_rotary_factor rope_parameters",
        "gpt_oss, rope_parameters rms_norm_eps",
        "mixtral, rope_parameters rms_norm_eps"
    })
    void defaultsMakeTheSameModel(String family, String keys) throws Exception {
        copy(family, config -> Stream.of(keys.split(" ")).forEach(config::remove));
        requireGolden(family);
    }

    /** Windows of the first two layers, as transformers has them. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "mixtral | {} | 0 0",
                "mixtral | {'sliding_window': 7} | 7 7",
                "gpt_oss | {} | 128 0",
                "gpt_oss | {'layer_types': ['full_attention', 'sliding_attention']} | 0 128",
                "qwen2_moe | {'sliding_window': 7} | 0 0",
                "qwen2_moe | {'use_sliding_window': true, 'sliding_window': 7} | 7 0",
                "qwen2_moe | {'use_sliding_window': true, 'max_window_layers': 0} | 0 0",
                "qwen2_moe | {'use_sliding_window': true, 'layer_types': ['full_attention', 'sliding_attention']} | 0 4096",
                "qwen3_moe | {'sliding_window': 7} | 0 0",
                "qwen3_moe | {'use_sliding_window': true, 'layer_types': ['full_attention', 'full_attention']} | 4096 4096",
                "glm4_moe | {'use_sliding_window': true, 'sliding_window': 7} | 0 0"
            })
    void windows(String family, String keys, String windows) throws IOException {
        JsonObject config = JsonParser.parseString(keys.replace('\'', '"')).getAsJsonObject();
        config.addProperty("model_type", family);
        Files.writeString(folder.resolve("config.json"), config.toString());
        CheckpointConfig read = CheckpointConfig.read(folder);
        assertThat(
                        GroupedQueryAttention.window(read, 0)
                                + " "
                                + GroupedQueryAttention.window(read, 1))
                .isEqualTo(windows);
    }

    /** As transformers ignores them; each would make another model. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "mixtral | {'routed_scaling_factor': 3, 'norm_topk_prob': false, 'use_qk_norm': true}",
                "mixtral | {'attention_bias': true, 'qkv_bias': true, 'kv_lora_rank': 8, 'partial_rotary_factor': 0.5}",
                "qwen2_moe | {'routed_scaling_factor': 3, 'attention_bias': true, 'use_qk_norm': true}",
                "qwen3_moe | {'routed_scaling_factor': 3, 'qkv_bias': true, 'use_qk_norm': false}",
                "deepseek_v2 | {'norm_topk_prob': true, 'rope_interleave': false}",
                "gpt_oss | {'routed_scaling_factor': 3, 'norm_topk_prob': false, 'use_qk_norm': true}"
            })
    void keysOfOtherFamiliesAreIgnored(String family, String keys) throws Exception {
        copy(
                family,
                config ->
                        config.asMap()
                                .putAll(JsonParser.parseString(keys).getAsJsonObject().asMap()));
        requireGolden(family);
    }

    /** The model has no biases, whatever the file has. */
    @Test
    void biasesThatAreNotAskedForAreIgnored() throws Exception {
        copy("qwen2_moe", config -> config.addProperty("qkv_bias", false));
        float[] ignored = logits(folder);
        Path file = folder.resolve("model.safetensors");
        String bytes = Files.readString(file, StandardCharsets.ISO_8859_1);
        String without = bytes.replace("_proj.bias", "_proj.none");
        Files.writeString(file, without, StandardCharsets.ISO_8859_1);
        assertThat(ignored).isEqualTo(logits(folder)).isNotEqualTo(logits("qwen2_moe"));
    }

    /** Of old and new keys, the old ones come first; if they are null, there are none. */
    @ParameterizedTest
    @ValueSource(strings = {"{'rope_scaling': null}", "{'rope_parameters': null}"})
    void withoutRope(String keys) throws Exception {
        copy(
                "gpt_oss",
                config -> {
                    config.remove("rope_parameters");
                    config.asMap().putAll(JsonParser.parseString(keys).getAsJsonObject().asMap());
                });
        requireGolden("gpt_oss");
    }

    @Test
    void oldRopeBesideTheNewOne() throws Exception {
        copy(
                "gpt_oss",
                config -> {
                    config.add("rope_scaling", config.get("rope_parameters"));
                    config.add(
                            "rope_parameters", JsonParser.parseString("{'rope_type': 'default'}"));
                });
        requireGolden("gpt_oss");
    }

    @Test
    void otherTypesOfLayersAreRefused() throws IOException {
        copy(
                "gpt_oss",
                config ->
                        config.add("layer_types", JsonParser.parseString("['chunked_attention']")));
        CheckpointConfig read = CheckpointConfig.read(folder);
        assertThatThrownBy(() -> GroupedQueryAttention.window(read, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("layer_types has chunked_attention for layer 0")
                .hasMessageContaining("neither sliding_attention nor full_attention");
    }

    /** Mixtral's checkpoint has a head of its own. */
    @Test
    void aHeadThatIsThereIsNotTied() throws Exception {
        copy("mixtral", config -> config.addProperty("tie_word_embeddings", true));
        requireGolden("mixtral");
    }

    /** Every second layer of gpt-oss has a window. */
    @Test
    void withoutLayerTypes() throws Exception {
        copy("gpt_oss", config -> config.remove("layer_types"));
        requireGolden("gpt_oss");
    }

    /** The same model, if the rows of the weights that make rotated channels are reordered too. */
    @Test
    void rotatedHalvesInPlaceOfNeighbours() throws Exception {
        copy("deepseek_v3", config -> config.addProperty("rope_interleave", false));
        Path file = folder.resolve("model.safetensors");
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        int header = (int) bytes.getLong(0);
        JsonObject tensors =
                JsonParser.parseString(new String(bytes.array(), 8, header, StandardCharsets.UTF_8))
                        .getAsJsonObject();
        int reordered = 0;
        for (String name : tensors.keySet()) {
            if (name.endsWith("q_b_proj.weight") || name.endsWith("kv_a_proj_with_mqa.weight")) {
                JsonObject tensor = tensors.getAsJsonObject(name);
                int begin = 8 + header + tensor.getAsJsonArray("data_offsets").get(0).getAsInt();
                int rows = tensor.getAsJsonArray("shape").get(0).getAsInt();
                int rowBytes = 2 * tensor.getAsJsonArray("shape").get(1).getAsInt();
                // A head's last channels are rotated.
                int period = name.contains("q_b_proj") ? rows / 4 : rows;
                for (int last = period; last <= rows; last += period) {
                    halves(bytes.array(), begin + (last - ROPE) * rowBytes, rowBytes);
                }
                reordered++;
            }
        }
        assertThat(reordered).isEqualTo(2 * 2);
        Files.write(file, bytes.array());
        requireGolden("deepseek_v3");
    }

    /** Puts the first of each pair of rows before the second of each. */
    private static void halves(byte[] bytes, int begin, int rowBytes) {
        byte[] pairs = Arrays.copyOfRange(bytes, begin, begin + ROPE * rowBytes);
        for (int row = 0; row < ROPE; row++) {
            int from = 2 * row % ROPE + 2 * row / ROPE;
            System.arraycopy(pairs, from * rowBytes, bytes, begin + row * rowBytes, rowBytes);
        }
    }

    private void copy(String family, Consumer<JsonObject> change) throws IOException {
        Golden.copy(family, folder, change);
    }

    private void requireGolden(String family) throws Exception {
        List<Golden.Prompt> golden = Golden.of(family).prompts();
        List<long[]> prompts = golden.stream().map(Golden.Prompt::ids).toList();
        try (DecoderService service = DecoderService.start(folder, 2, DecoderOptions.DEFAULT)) {
            List<long[]> tokens = service.generate(prompts, NEW_TOKENS, _ -> Sampler.greedy());
            for (int i = 0; i < prompts.size(); i++) {
                assertThat(tokens.get(i))
                        .hasSize(NEW_TOKENS)
                        .containsExactly(Arrays.copyOf(golden.get(i).tokens(), NEW_TOKENS));
            }
        }
    }
}
