package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Graph;
import io.deepep.djl.decoder.Golden.Prompt;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** A GPU's combine may fail after the call has returned: then its results are not an answer. */
class LateFailureTest {
    private static final int NUM_LAYERS = 2;

    /** Goes into graphs that do nothing. */
    private static class Capturable extends CountingExchange {
        int numCaptures;

        Capturable(ExpertExchange real) {
            super(real);
        }

        @Override
        public boolean isCapturable(Device device) {
            return true;
        }

        @Override
        public Graph capture(Device device, Runnable work) {
            numCaptures++;
            work.run();
            return new Graph() {
                @Override
                public void replay() {}

                @Override
                public void close() {}
            };
        }
    }

    /** Fails the first time that it is asked how its last exchange went. */
    private static final class FailingOnce extends Capturable {
        private final boolean capturable;
        private boolean failed;

        FailingOnce(ExpertExchange real, boolean capturable) {
            super(real);
            this.capturable = capturable;
        }

        @Override
        public boolean isCapturable(Device device) {
            return capturable;
        }

        /** Waits for its last exchange first, like others. */
        @Override
        public Graph capture(Device device, Runnable work) {
            awaitLast();
            return super.capture(device, work);
        }

        @Override
        public void awaitLast() {
            super.awaitLast();
            if (numExchanges > 0 && !failed) {
                failed = true;
                throw new IllegalStateException("a peer did not come");
            }
        }
    }

    /** Fails when all ranks have made their exchanges of a step. */
    private static final class FailingInStep extends Capturable {
        private final int failing;

        FailingInStep(ExpertExchange real, int failing) {
            super(real);
            this.failing = failing;
        }

        @Override
        public NDArray exchange(
                NDArray x,
                NDArray topkIdx,
                NDArray topkWeights,
                int numExperts,
                LocalExperts experts,
                Runnable meanwhile) {
            NDArray y = super.exchange(x, topkIdx, topkWeights, numExperts, experts, meanwhile);
            if (numExchanges == failing * NUM_LAYERS) {
                throw new IllegalStateException("this rank alone");
            }
            return y;
        }
    }

    private static void fails(ThrowingCallable request) {
        assertThatThrownBy(request).hasMessage("a peer did not come");
    }

    private static void onRanks(int numRanks, DecoderRanks.Body body) throws InterruptedException {
        DecoderRanks.run(Golden.folder("mixtral"), numRanks, DecoderOptions.DEFAULT, body);
    }

    @Test
    void isToldByTheRequestItBelongsTo() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        List<long[]> prompts = List.of(prompt.ids());
        onRanks(
                1,
                (decoder, _) -> {
                    TwoModes modes = decoder.exchange;
                    ExpertExchange prefill = modes.prefill;
                    modes.prefill = new FailingOnce(prefill, false);
                    fails(() -> decoder.logits(prompts));
                    modes.prefill = new FailingOnce(prefill, false);
                    FailingOnce decoding = new FailingOnce(modes.decoding, false);
                    modes.decoding = decoding;
                    fails(() -> decoder.generate(prompts, 3, Sampler.greedy()));
                    assertThat(decoding.numExchanges).isZero();
                    fails(() -> decoder.generate(prompts, 3, Sampler.greedy()));
                    assertThat(decoder.generate(prompts, 3, Sampler.greedy()).get(0))
                            .containsExactly(Arrays.copyOf(prompt.tokens(), 3));
                });
    }

    /** It has prepared one step less than the others, which would capture without it. */
    @Test
    void ofOneRankDelaysTheCaptureOfAll() throws Exception {
        onRanks(
                2,
                (decoder, communicator) -> {
                    int failing = communicator.rank() == 0 ? 2 : -1;
                    try (NDManager scope = decoder.manager.newSubManager()) {
                        FailingInStep decoding =
                                new FailingInStep(decoder.exchange.decoding, failing);
                        decoder.exchange.decoding = decoding;
                        decoder.exchange.decoding(true);
                        for (int step = 1; step <= 5; step++) {
                            if (step == failing) {
                                assertThatThrownBy(() -> decoder.step.logits(scope))
                                        .hasMessage("this rank alone");
                            } else {
                                decoder.step.logits(scope);
                            }
                            assertThat(decoding.numCaptures).isEqualTo(step < 4 ? 0 : 1);
                        }
                    }
                });
    }

    /** Otherwise all would go on with wrong results, without a graph. */
    @Test
    void isNotTakenForOneOfACapture() throws Exception {
        onRanks(
                1,
                (decoder, _) -> {
                    try (NDManager scope = decoder.manager.newSubManager()) {
                        FailingOnce decoding = new FailingOnce(decoder.exchange.decoding, true);
                        decoder.exchange.decoding = decoding;
                        decoder.exchange.decoding(true);
                        decoder.step.logits(scope);
                        decoder.step.logits(scope);
                        fails(() -> decoder.step.logits(scope));
                        decoder.step.logits(scope);
                        decoder.step.logits(scope);
                        assertThat(decoding.numCaptures).isOne();
                    }
                });
    }
}
