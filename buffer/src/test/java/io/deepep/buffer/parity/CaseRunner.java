package io.deepep.buffer.parity;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.RankFailedException;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Runs a case through buffers of a backend, ranks as threads. */
final class CaseRunner {
    private final TestBackend backend;
    private final ParityCase parity;

    CaseRunner(TestBackend backend, ParityCase parity) {
        this.backend = backend;
        this.parity = parity;
    }

    /** What each rank gets, host tensors by name. */
    List<Map<String, Tensor>> run() throws InterruptedException {
        int numRanks = parity.topology().numRanks();
        List<Map<String, Tensor>> outputs = new ArrayList<>(Collections.nCopies(numRanks, null));
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        try (Buffer buffer = open(communicator)) {
                            RankMemory memory =
                                    new RankMemory(backend, communicator.rank(), parity);
                            outputs.set(
                                    communicator.rank(),
                                    parity.isLowLatency()
                                            ? new LowLatencyRun(buffer, memory, parity).run()
                                            : new NormalRun(buffer, memory, parity).run());
                        }
                    });
        } catch (RankFailedException failed) {
            throw new AssertionError("rank " + failed.rank() + ": " + failed.getCause(), failed);
        }
        return outputs;
    }

    private Buffer open(Communicator communicator) {
        Buffer.Builder builder =
                Buffer.builder(communicator)
                        .ranksPerNode(parity.topology().numNvlRanks())
                        .device(backend.device(communicator.rank(), communicator.size()));
        int maxTokens = parity.number("max_tokens");
        int hidden = parity.number("hidden");
        int numTopk = parity.number("num_topk");
        int numExperts = parity.number("num_experts");
        return parity.isLowLatency()
                ? builder.lowLatency(new LowLatencyLimits(maxTokens, hidden, numTopk, numExperts))
                        .open()
                : builder.normal(NormalLimits.of(maxTokens, hidden, numTopk, numExperts)).open();
    }
}
