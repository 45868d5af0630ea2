package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.decoder.Golden.Prompt;
import io.deepep.djl.exchange.Transport;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The tokens and logits of transformers, from checkpoints that it wrote: prompts are read in normal
 * mode, tokens added in low-latency mode.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DecoderTest {
    private static final int NUM_RANKS = 4;
    private static final int NEW_TOKENS = 64;

    /** Of logits up to 20: rows travel as BF16, and what experts give comes back as BF16. */
    private static final float F32_ERROR = 0.06f;

    /** Weights and activations are multiplied as BF16 besides. */
    private static final float BF16_ERROR = 0.3f;

    /** Four bits of a row travel. */
    private static final float FP8_ERROR = 0.5f;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "mixtral",
                "qwen2_moe",
                "qwen3_moe",
                "deepseek_v2",
                "deepseek_v2_lite",
                "deepseek_v3",
                "deepseek_v3_fp8",
                "glm4_moe",
                "gpt_oss"
            })
    void equalsTransformers(String family) throws Exception {
        check(family, NUM_RANKS, DecoderOptions.DEFAULT.withType(DType.F32), F32_ERROR);
        check(family, NUM_RANKS, DecoderOptions.DEFAULT, BF16_ERROR);
        int numGpus = TorchDevices.numGpus();
        if (numGpus > 1 && numGpus < NUM_RANKS) { // above, ranks shared a GPU
            check(family, numGpus, DecoderOptions.DEFAULT, BF16_ERROR);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void fewerRanksDoToo(int numRanks) throws Exception {
        check("deepseek_v3", numRanks, DecoderOptions.DEFAULT, BF16_ERROR);
    }

    /** Of gpt_oss, the hidden size is no multiple of 128. */
    @ParameterizedTest
    @ValueSource(strings = {"mixtral", "gpt_oss"})
    void rowsMayTravelAsFp8(String family) throws Exception {
        DecoderOptions options = new DecoderOptions(8, 128, 256, DType.BF16, Transport.FP8);
        check(family, 2, options, FP8_ERROR);
    }

    /** A token has two experts, so at least two of the ranks receive no row. */
    @Test
    void ranksWithoutRowsTakePart() throws Exception {
        List<long[]> one = List.of(new long[] {52});
        for (Transport transport : Transport.values()) {
            DecoderOptions options = new DecoderOptions(1, 16, 1, DType.BF16, transport);
            long[] ofOneRank = generate(one, 1, options);
            assertThat(generate(one, NUM_RANKS, options))
                    .as(transport.name())
                    .containsExactly(ofOneRank);
        }
    }

    private static long[] generate(List<long[]> prompts, int numRanks, DecoderOptions options)
            throws IOException {
        try (DecoderService service =
                DecoderService.start(Golden.folder("mixtral"), numRanks, options)) {
            return service.generate(prompts, 8, _ -> Sampler.greedy()).get(0);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3", "glm4_moe", "gpt_oss"})
    void passesLeaveNoArraysWithTheModel(String family) throws Exception {
        DecoderRanks.run(
                Golden.folder(family),
                1,
                DecoderOptions.DEFAULT,
                (decoder, _) -> {
                    List<long[]> prompts = List.of(new long[] {52});
                    int loaded = decoder.manager.getManagedArrays().size();
                    decoder.generate(prompts, 3, Sampler.greedy());
                    // Of BF16, which DJL cannot print.
                    assertThat(decoder.manager.getManagedArrays().size()).isEqualTo(loaded);
                    decoder.generate(prompts, 8, Sampler.greedy());
                    int captured = decoder.manager.getManagedArrays().size();
                    assertThat(captured).isBetween(loaded, loaded + 1); // logits of a graph
                    decoder.generate(prompts, 8, Sampler.greedy());
                    assertThat(decoder.manager.getManagedArrays().size()).isEqualTo(captured);
                });
    }

    private static void check(String family, int numRanks, DecoderOptions options, float allowed)
            throws Exception {
        List<Prompt> golden = Golden.of(family).prompts();
        List<long[]> prompts = golden.stream().map(Prompt::ids).toList();
        try (DecoderService service =
                DecoderService.start(Golden.folder(family), numRanks, options)) {
            List<float[]> logits = service.logits(prompts);
            List<long[]> tokens = service.generate(prompts, NEW_TOKENS, _ -> Sampler.greedy());
            float error = 0;
            for (int i = 0; i < prompts.size(); i++) {
                Prompt expected = golden.get(i);
                error = Math.max(error, largestError(logits.get(i), expected.logits()));
                assertThat(tokens.get(i)).as(expected.text()).containsExactly(expected.tokens());
            }
            System.out.printf(
                    "%s, %d ranks, %s, rows as %s: logits differ by %.3f%n",
                    family, numRanks, options.type(), options.transport(), error);
            assertThat(error).isLessThan(allowed);
        }
    }

    private static float largestError(float[] actual, float[] expected) {
        float largest = 0;
        for (int i = 0; i < expected.length; i++) {
            largest = Math.max(largest, Math.abs(actual[i] - expected[i]));
        }
        return largest;
    }

    /** Two ranks have a prompt each, and two have none. */
    @Test
    void endsSoonAfterTheLongestAnswer() throws Exception {
        List<long[]> prompts =
                Golden.of("mixtral").prompts().stream().limit(2).map(Prompt::ids).toList();
        try (DecoderService service =
                DecoderService.start(Golden.folder("mixtral"), 4, DecoderOptions.DEFAULT)) {
            List<long[]> whole = service.generate(prompts, 60, _ -> Sampler.greedy());
            Set<Integer> ends = Set.of((int) whole.get(0)[2], (int) whole.get(1)[20]);
            int longest = 0;
            for (long[] tokens : whole) {
                int answer = 1;
                while (!ends.contains((int) tokens[answer - 1])) {
                    answer++;
                }
                longest = Math.max(longest, answer);
            }
            int made = (longest + 15) / 16 * 16;
            assertThat(made).isLessThan(60);
            List<long[]> ended = service.generate(prompts, 60, _ -> Sampler.greedy(), ends);
            for (int i = 0; i < prompts.size(); i++) {
                assertThat(ended.get(i)).containsExactly(Arrays.copyOf(whole.get(i), made));
            }
            Set<Integer> never = Set.of(319);
            assertThat(service.generate(prompts, 40, _ -> Sampler.greedy(), never))
                    .allMatch(tokens -> tokens.length == 40);
        }
    }

    /** Also after requests that were refused. */
    @Test
    void wrongRequestsAreRefusedAndTheNextIsServed() throws Exception {
        DecoderOptions options = new DecoderOptions(2, 70, 24, DType.BF16, Transport.BF16);
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        try (DecoderService service = DecoderService.start(Golden.folder("mixtral"), 2, options)) {
            refused(service, List.of(new long[0]), 1, "empty");
            refused(service, List.of(new long[] {320}), 1, "token 320 is not in [0, 320)");
            refused(service, List.of(new long[] {-1}), 1, "token -1");
            refused(service, List.of(new long[30]), 1, "maxPromptTokens=24");
            refused(service, List.of(new long[7]), 64, "maxLength=70");
            refused(service, List.of(new long[7]), Integer.MAX_VALUE, "maxLength=70");
            refused(service, List.of(new long[7]), 0, "numNewTokens=0");
            refused(service, List.of(), 70, "numNewTokens=70", "maxLength=70");
            assertThat(service.generate(List.of(), 69, _ -> Sampler.greedy())).isEmpty();
            assertThat(service.logits(List.of())).isEmpty();
            List<long[]> five =
                    List.of(prompt.ids(), prompt.ids(), prompt.ids(), prompt.ids(), prompt.ids());
            refused(service, five, 1, "maxSequences=2");
            assertThatThrownBy(
                            () ->
                                    service.generate(
                                            List.of(prompt.ids()),
                                            1,
                                            rank -> Sampler.topP(1, 2 * rank, 1)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("p=0.0");
            assertThat(service.generate(List.of(prompt.ids()), 10, _ -> Sampler.greedy()).get(0))
                    .containsExactly(Arrays.copyOf(prompt.tokens(), 10));
        }
    }

    private static void refused(
            DecoderService service, List<long[]> prompts, int numNewTokens, String... messages) {
        assertThatThrownBy(() -> service.generate(prompts, numNewTokens, _ -> Sampler.greedy()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(messages);
    }
}
