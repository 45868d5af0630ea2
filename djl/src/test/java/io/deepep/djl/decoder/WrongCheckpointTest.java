package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.exchange.Transport;
import io.deepep.error.RankMismatchException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Folders that do not fit together are refused by all ranks, with what is wrong. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class WrongCheckpointTest {
    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource({
        "hidden_size, 256, model.embed_tokens.weight has shape",
        "num_hidden_layers, 2000000000, no tensor model.layers.2.input_layernorm.weight",
        "num_hidden_layers, 3, no tensor model.layers.2.input_layernorm.weight",
        "num_local_experts, 16, model.layers.0.block_sparse_moe.gate.weight has shape",
        "num_local_experts, 6, is not a multiple of numRanks=4",
        "intermediate_size, 32, model.layers.0.block_sparse_moe.experts.",
        "num_key_value_heads, 4, model.layers.0.self_attn.k_proj.weight has shape",
        "vocab_size, null, has no vocab_size",
        "hidden_size, many, hidden_size=\"many\" is not an integer",
        "num_key_value_heads, 2.5, num_key_value_heads=\"2.5\" is not an integer",
        "num_attention_heads, 0, num_attention_heads=0 must be at least 1",
        "num_key_value_heads, 3, num_attention_heads=4 is not a multiple of num_key_value_heads=3",
        "rms_norm_eps, small, rms_norm_eps=\"small\" is not a finite number",
        "tie_word_embeddings, no, tie_word_embeddings=\"no\" is not true or false",
        "hidden_act, gelu, hidden_act=gelu is not silu"
    })
    void isRefused(String key, String value, String message) throws IOException {
        write(key, value);
        assertThatThrownBy(() -> DecoderService.start(folder, 4, DecoderOptions.DEFAULT))
                .hasStackTraceContaining(message);
    }

    @Test
    void foldersThatAreNoneAreRefused() throws IOException {
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("has no config.json");
        Files.writeString(folder.resolve("config.json"), "[");
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("is not a JSON object");
        Files.writeString(folder.resolve("config.json"), "{}", StandardCharsets.UTF_16);
        assertThatThrownBy(() -> CheckpointConfig.read(folder))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("config.json is not a JSON object");
    }

    @ParameterizedTest
    @CsvSource({"mixtral, num_local_experts", "deepseek_v3, n_routed_experts"})
    void theMissingNumberOfExpertsIsNamed(String family, String key) throws IOException {
        write(family, key, "null");
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageEndingWith("has no " + key);
    }

    @Test
    void oddRotatedChannelsAreRefused() throws IOException {
        write("deepseek_v3", "qk_rope_head_dim", "7");
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .hasStackTraceContaining("qk_rope_head_dim=7 must be even");
    }

    @Test
    void otherWaysToChooseExpertsAreRefused() throws IOException {
        write("deepseek_v2", "topk_method", "noaux_tc");
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .hasStackTraceContaining(
                        "topk_method=noaux_tc is neither greedy nor group_limited_greedy");
    }

    /** Before ranks start. */
    @Test
    void otherFamiliesAreRefused() throws IOException {
        write("model_type", "llama");
        assertThatThrownBy(() -> DecoderService.start(folder, 4, DecoderOptions.DEFAULT))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("model_type=llama is not one of mixtral");
    }

    @ParameterizedTest
    @ValueSource(strings = {"x", "2.5", "4294967297"})
    void endTokensThatAreNoIntegersAreRefused(String id) throws IOException {
        Files.writeString(
                folder.resolve("generation_config.json"),
                "{\"eos_token_id\": [2, \"" + id + "\"]}");
        assertThatThrownBy(() -> CheckpointConfig.endTokens(folder))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(
                        "config.json: eos_token_id=[2,\"%s\"] is not an integer or a list of them",
                        id);
    }

    /** The weights end in the middle. */
    @Test
    void cutFilesAreRefused() throws IOException {
        write("num_experts_per_tok", "2");
        Path file = folder.resolve("model.safetensors");
        byte[] all = Files.readAllBytes(file);
        Files.write(file, java.util.Arrays.copyOf(all, all.length / 2));
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .hasStackTraceContaining("not within the");
    }

    /** Not a model without norms, sinks or biases. */
    @ParameterizedTest
    @CsvSource({
        "qwen3_moe, self_attn.q_norm.weight",
        "qwen3_moe, self_attn.k_norm.weight",
        "glm4_moe, self_attn.q_norm.weight",
        "glm4_moe, self_attn.v_proj.bias",
        "qwen2_moe, self_attn.q_proj.bias",
        "gpt_oss, self_attn.k_proj.bias",
        "gpt_oss, self_attn.o_proj.bias",
        "gpt_oss, self_attn.sinks",
        "gpt_oss, mlp.router.bias",
        "deepseek_v3, mlp.gate.e_score_correction_bias"
    })
    void smallTensorsAreMissed(String family, String name) throws IOException {
        write(family, "num_experts_per_tok", "2");
        String missing = "model.layers.1." + name;
        rename(missing, missing.replace("layers.1", "layers.x"));
        assertThatThrownBy(() -> DecoderService.start(folder, 2, DecoderOptions.DEFAULT))
                .hasStackTraceContaining("no tensor " + missing);
    }

    /** Of the same sizes, so that rows of one would go to experts of the other. */
    @Test
    void anotherModelOnAnotherRankIsRefused() throws IOException {
        write("rms_norm_eps", "1");
        requireMismatch();
    }

    /** With the same config.json, as of a model and of what was trained on from it. */
    @Test
    void otherWeightsOnAnotherRankAreRefused() throws IOException {
        Files.copy(Golden.folder("mixtral").resolve("config.json"), folder.resolve("config.json"));
        Files.copy(
                Golden.folder("mixtral").resolve("model.safetensors"),
                folder.resolve("model.safetensors"));
        swap("layers.0.self_attn.q_proj", "layers.1.self_attn.q_proj");
        requireMismatch();
    }

    private void requireMismatch() {
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        try (InProcessGroup group = InProcessGroup.of(2)) {
            assertThatThrownBy(
                            () ->
                                    group.run(
                                            communicator -> {
                                                int rank = communicator.rank();
                                                try (Decoder _ =
                                                        Decoder.open(
                                                                rank == 0
                                                                        ? Golden.folder("mixtral")
                                                                        : folder,
                                                                communicator,
                                                                TorchDevices.ofRank(rank),
                                                                DecoderOptions.DEFAULT)) {
                                                    // not opened
                                                } catch (RankMismatchException expected) {
                                                    failures.add(expected);
                                                    throw expected;
                                                }
                                            }))
                    .hasStackTraceContaining("ranks disagree on the model: rank ");
        }
        assertThat(failures).hasSize(2);
    }

    private void swap(String name, String other) throws IOException {
        String between = "x".repeat(name.length());
        rename(name, between);
        rename(other, name);
        rename(between, other);
    }

    private void rename(String name, String other) throws IOException {
        Path file = folder.resolve("model.safetensors");
        String bytes = Files.readString(file, StandardCharsets.ISO_8859_1);
        assertThat(bytes).containsOnlyOnce(name);
        Files.writeString(file, bytes.replace(name, other), StandardCharsets.ISO_8859_1);
    }

    /** Only the last rank misses a tensor. */
    @Test
    void ranksThatHaveLoadedEndWithTheOneThatFails() throws Exception {
        write("num_experts_per_tok", "2");
        String name = "layers.1.block_sparse_moe.experts.7.w2.weight";
        rename(name, name.replace("w2", "wX"));
        assertThatThrownBy(() -> DecoderService.start(folder, 4, DecoderOptions.DEFAULT))
                .hasStackTraceContaining("no tensor model." + name);
        assertThat(DecoderServiceTest.ranks()).isEmpty();
    }

    /** As long as they can be, tables of angles have more elements than an array of Java. */
    @Test
    void sequencesOfTooManyTokensAreRefused() {
        DecoderOptions options =
                new DecoderOptions(1, Integer.MAX_VALUE, 8, DType.BF16, Transport.BF16);
        assertThatThrownBy(() -> DecoderService.start(Golden.folder("mixtral"), 1, options))
                .hasStackTraceContaining("maxLength=2147483647 must be at most 134217727");
    }

    /** Before there is a thread for each. */
    @Test
    void ranksThatCannotShareTheExpertsAreRefused() {
        for (int numRanks : new int[] {3, 16, Integer.MAX_VALUE}) {
            assertThatThrownBy(
                            () ->
                                    DecoderService.start(
                                            Golden.folder("gpt_oss"),
                                            numRanks,
                                            DecoderOptions.DEFAULT))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("numExperts=8 of ")
                    .hasMessageContaining("is not a multiple of numRanks=" + numRanks);
        }
    }

    @Test
    void noRanksAreRefused() {
        for (int numRanks : new int[] {0, -1}) {
            assertThatThrownBy(
                            () ->
                                    DecoderService.start(
                                            Golden.folder("mixtral"),
                                            numRanks,
                                            DecoderOptions.DEFAULT))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("numRanks=" + numRanks + " must be at least 1");
        }
    }

    private void write(String key, String value) throws IOException {
        write("mixtral", key, value);
    }

    private void write(String family, String key, String value) throws IOException {
        Golden.copy(
                family,
                folder,
                config -> {
                    config.remove(key);
                    if (value.matches("\\d+")) {
                        config.addProperty(key, Integer.parseInt(value));
                    } else if (!value.equals("null")) {
                        config.addProperty(key, value);
                    }
                });
    }
}
