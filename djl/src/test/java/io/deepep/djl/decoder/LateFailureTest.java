package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import io.deepep.Communicator;
import io.deepep.Graph;
import io.deepep.InProcessGroup;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.decoder.Golden.Prompt;
import io.deepep.djl.exchange.ExpertExchange;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** A GPU's combine may fail after the call has returned: then its results are not an answer. */
class LateFailureTest {
    /** Fails the first time that it is asked how its last exchange went; cannot be captured. */
    private static class FailingOnce extends CountingExchange {
        private boolean failed;

        FailingOnce(ExpertExchange real) {
            super(real);
        }

        @Override
        public boolean isCapturable(Device device) {
            return false;
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

    /** May be captured too, but waits for its last exchange first. */
    private static final class Captured extends FailingOnce {
        private int numCaptures;

        Captured(ExpertExchange real) {
            super(real);
        }

        @Override
        public boolean isCapturable(Device device) {
            return true;
        }

        @Override
        public Graph capture(Device device, Runnable work) {
            awaitLast();
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

    private static void fails(ThrowingCallable request) {
        assertThatThrownBy(request).hasMessage("a peer did not come");
    }

    private static Decoder open(Communicator communicator) throws IOException {
        return Decoder.open(
                Golden.folder("mixtral"),
                communicator,
                TorchDevices.ofRank(0),
                DecoderOptions.DEFAULT);
    }

    @Test
    void isToldByTheRequestItBelongsTo() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        List<long[]> prompts = List.of(prompt.ids());
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        try (Decoder decoder = open(communicator)) {
                            TwoModes modes = decoder.exchange;
                            ExpertExchange prefill = modes.prefill;
                            modes.prefill = new FailingOnce(prefill);
                            fails(() -> decoder.logits(prompts));
                            modes.prefill = new FailingOnce(prefill);
                            FailingOnce decoding = new FailingOnce(modes.decoding);
                            modes.decoding = decoding;
                            fails(() -> decoder.generate(prompts, 3, Sampler.greedy()));
                            assertThat(decoding.numExchanges).isZero();
                            fails(() -> decoder.generate(prompts, 3, Sampler.greedy()));
                            assertThat(decoder.generate(prompts, 3, Sampler.greedy()).get(0))
                                    .containsExactly(Arrays.copyOf(prompt.tokens(), 3));
                        }
                    });
        }
    }

    /** Otherwise all would go on with wrong results, without a graph. */
    @Test
    void isNotTakenForOneOfACapture() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        try (Decoder decoder = open(communicator);
                                NDManager scope = decoder.manager.newSubManager()) {
                            Captured decoding = new Captured(decoder.exchange.decoding);
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
}
