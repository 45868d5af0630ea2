package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import io.deepep.DType;
import io.deepep.Graph;
import io.deepep.djl.decoder.Golden.Prompt;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.Transport;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Decoding steps in a graph, where there is a GPU. */
@EnabledIf("io.deepep.djl.Moe#hasGpu")
class DecodingStepTest {
    private static final int NUM_RANKS = 2;
    private static final int NUM_LAYERS = 2;

    /** Refuses to be captured when all is done. */
    private static final class Refusing extends CountingExchange {
        Refusing(ExpertExchange real) {
            super(real);
        }

        @Override
        public Graph capture(Device device, Runnable work) {
            return super.capture(
                    device,
                    () -> {
                        work.run();
                        throw new IllegalStateException("not captured");
                    });
        }
    }

    /** Two steps without a graph, and the one that is captured; without a graph, all. */
    @ParameterizedTest
    @CsvSource({"-1, true, 3", "-1, false, 11", "0, true, 12", "1, true, 12"})
    void isCapturedOnAllRanksOrNone(int refusing, boolean graph, int stepsOnHost) throws Exception {
        check(DecoderOptions.DEFAULT.withGraph(graph), refusing, stepsOnHost);
    }

    /** Experts as small as these compute all slots. */
    @ParameterizedTest
    @CsvSource({"1, BF16", "64, BF16", "65, BF16", "128, BF16", "128, F32"})
    void anyNumberOfSequences(int maxSequences, DType type) throws Exception {
        check(new DecoderOptions(maxSequences, 128, 256, type, Transport.BF16), -1, 3);
    }

    private static void check(DecoderOptions options, int refusing, int stepsOnHost)
            throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        List<long[]> prompts = List.of(prompt.ids());
        DecoderRanks.run(
                Golden.folder("mixtral"),
                NUM_RANKS,
                options,
                (decoder, communicator) -> {
                    ExpertExchange real = decoder.exchange.decoding;
                    CountingExchange decoding =
                            refusing == communicator.rank()
                                    ? new Refusing(real)
                                    : new CountingExchange(real);
                    decoder.exchange.decoding = decoding;
                    long[] tokens = decoder.generate(prompts, 12, Sampler.greedy()).get(0);
                    assertThat(tokens).containsExactly(Arrays.copyOf(prompt.tokens(), 12));
                    assertThat(decoding.numExchanges).isEqualTo(NUM_LAYERS * stepsOnHost);
                    assertThat(decoder.generate(prompts, 12, Sampler.greedy()).get(0))
                            .containsExactly(tokens);
                });
    }
}
