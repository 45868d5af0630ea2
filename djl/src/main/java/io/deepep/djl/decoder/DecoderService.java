package io.deepep.djl.decoder;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.MoeLayers;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.jmx.Beans;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.management.ObjectName;

/**
 * A model on the ranks of one process. Each rank has a thread, its own experts, and a GPU if there
 * are any. Prompts are distributed to the ranks in turn; ranks without prompts run their experts
 * for the others. Thread-safe; requests that are made at the same time are served together, as far
 * as {@link DecoderOptions#maxSequences} allows.
 *
 * <p>It is a platform MXBean, see {@link DecoderServiceMXBean}.
 */
public final class DecoderService implements DecoderServiceMXBean, AutoCloseable {
    private final int numRanks;
    private final PromptLimits limits;

    private final BatchScheduler scheduler;
    private final ObjectName name;

    /** Completes when no rank runs any more. */
    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    /**
     * Starts the ranks and loads the model; returns when it is loaded.
     *
     * @param folder the folder of a Hugging Face checkpoint
     * @param numRanks at least 1; the number of experts must be a multiple of it
     * @throws IllegalArgumentException if there are no ranks, the number of experts is not a
     *     multiple of {@code numRanks}, the family of the model is not supported, or its rows
     *     cannot travel as the options say
     * @throws CompletionException if a rank fails to load it, with the cause
     */
    public static DecoderService start(Path folder, int numRanks, DecoderOptions options)
            throws IOException {
        if (numRanks < 1) {
            throw new IllegalArgumentException(
                    "numRanks=" + numRanks + " must be at least 1; take one for each GPU");
        }
        CheckpointConfig config = CheckpointConfig.read(folder);
        MoeLayers layers = MoeLayers.of(config);
        int numExperts = layers.rule().numExperts();
        if (numExperts % numRanks != 0) {
            throw new IllegalArgumentException(
                    "numExperts=%s of %s is not a multiple of numRanks=%s; every rank must hold the same number of experts"
                            .formatted(numExperts, config, numRanks));
        }
        PromptLimits limits = new PromptLimits(options, config.number("vocab_size"));
        DecoderService service = new DecoderService(numRanks, limits);
        Thread.ofPlatform()
                .name("deepep-decoder")
                .daemon()
                .start(() -> service.runRanks(folder, options));
        try {
            service.scheduler.awaitLoaded();
            return service;
        } catch (RuntimeException failure) {
            service.close();
            throw failure;
        }
    }

    private DecoderService(int numRanks, PromptLimits limits) {
        this.numRanks = numRanks;
        this.limits = limits;
        scheduler = new BatchScheduler(numRanks, limits.options());
        name = Beans.register("type=DecoderService", this);
    }

    private void runRanks(Path folder, DecoderOptions options) {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(communicator -> serve(communicator, folder, options));
        } catch (Throwable failure) {
            scheduler.fail(failure);
        } finally {
            ended.complete(null);
        }
    }

    private void serve(Communicator communicator, Path folder, DecoderOptions options)
            throws Exception {
        try (Decoder decoder =
                Decoder.open(
                        folder,
                        communicator,
                        TorchDevices.ofRank(communicator.localRank()),
                        options)) {
            scheduler.serve(decoder, communicator.rank());
        } catch (Throwable failure) {
            scheduler.fail(failure);
            throw failure;
        }
    }

    /**
     * Continues prompts with new tokens.
     *
     * @param prompts the tokens of each prompt, at least one
     * @param samplers makes a sampler for each share of the prompts: given i from 0 to {@code
     *     numRanks - 1}, the sampler of prompts i, {@code i + numRanks}, {@code i + 2 * numRanks}
     *     and so on. A sampler is called by one rank at a time
     * @param endTokens generation stops soon after every prompt has got one of these, so that all
     *     get fewer new tokens
     * @return the new tokens of each prompt
     * @throws IllegalArgumentException if a prompt or a sampler is refused; others are served
     * @throws IllegalStateException if the service is closed, or the thread is interrupted: then
     *     its request makes room for others soon, and its interrupt status stays set
     * @throws CompletionException if a rank has failed, with the cause; then all ranks end
     */
    public List<long[]> generate(
            List<long[]> prompts,
            int numNewTokens,
            IntFunction<Sampler> samplers,
            Set<Integer> endTokens) {
        List<List<long[]>> dealt =
                IntStream.range(0, numRanks).mapToObj(rank -> dealtTo(rank, prompts)).toList();
        dealt.forEach(ofRank -> limits.check(ofRank, numNewTokens));
        // Made here, because what a rank throws ends it.
        List<Sampler> made =
                IntStream.range(0, numRanks)
                        .mapToObj(
                                rank ->
                                        Objects.requireNonNull(
                                                samplers.apply(rank),
                                                () -> "samplers made null for rank " + rank))
                        .toList();
        if (prompts.isEmpty()) {
            return List.of();
        }
        Request request = new Request(dealt, numNewTokens, made, Set.copyOf(endTokens));
        scheduler.add(request);
        try {
            return request.answer.get();
        } catch (CancellationException _) {
            throw new IllegalStateException("the service is closed; start another");
        } catch (ExecutionException failure) {
            throw new CompletionException(failure.getCause());
        } catch (InterruptedException stopped) {
            scheduler.withdraw(request);
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "interrupted while the ranks served the request", stopped);
        }
    }

    /** The same without end tokens: every prompt gets {@code numNewTokens} new tokens. */
    public List<long[]> generate(
            List<long[]> prompts, int numNewTokens, IntFunction<Sampler> samplers) {
        return generate(prompts, numNewTokens, samplers, Set.of());
    }

    /** Computes the logits [V] after each prompt. */
    public List<float[]> logits(List<long[]> prompts) {
        List<List<float[]>> ofRanks =
                Stream.generate(() -> (List<float[]>) new ArrayList<float[]>())
                        .limit(numRanks)
                        .toList();
        generate(prompts, 1, rank -> recorded(ofRanks.get(rank)));
        return IntStream.range(0, prompts.size())
                .mapToObj(i -> ofRanks.get(i % numRanks).get(i / numRanks))
                .toList();
    }

    private static Sampler recorded(List<float[]> seen) {
        return logits -> {
            for (long i = 0; i < logits.getShape().get(0); i++) {
                seen.add(logits.get(i).toFloatArray());
            }
            return Sampler.greedy().next(logits);
        };
    }

    private List<long[]> dealtTo(int rank, List<long[]> prompts) {
        return IntStream.iterate(rank, i -> i < prompts.size(), i -> i + numRanks)
                .mapToObj(prompts::get)
                .toList();
    }

    @Override
    public int getNumRanks() {
        return numRanks;
    }

    @Override
    public boolean isHealthy() {
        return scheduler.failure() == null;
    }

    @Override
    public String getLastFailure() {
        Throwable failure = scheduler.failure();
        return failure == null ? "" : failure.toString();
    }

    @Override
    public int getRunningRequests() {
        return scheduler.numRunning();
    }

    @Override
    public int getWaitingRequests() {
        return scheduler.numWaiting();
    }

    /** Ends the threads of the ranks, after the requests that run, and closes the model. */
    @Override
    public void close() {
        scheduler.close();
        ended.join();
        Beans.unregister(name);
    }
}
