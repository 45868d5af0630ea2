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
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import javax.management.ObjectName;

/**
 * A model on the ranks of one process. Each rank has a thread, its own experts, and a GPU if there
 * are any. Prompts are distributed to the ranks in turn; ranks without prompts run their experts
 * for the others. Thread-safe; requests run one at a time.
 *
 * <p>It is a platform MXBean, see {@link DecoderServiceMXBean}.
 */
public final class DecoderService implements DecoderServiceMXBean, AutoCloseable {
    private final int numRanks;
    private final PromptLimits limits;

    /**
     * Of each rank; whoever adds to them locks them, so that a job runs on all ranks or on none.
     */
    private final List<BlockingQueue<Job>> jobs = new ArrayList<>();

    /** Whether all have their last job. */
    private boolean ending;

    /** Fails as the first rank does. */
    private final CompletableFuture<Void> failed = new CompletableFuture<>();

    private final ObjectName name;

    /** Completes when no rank runs any more. */
    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    /** What a rank does next; {@link #LAST} ends it. */
    private record Job(Work<?> work, CompletableFuture<Object> result) {
        private static final Job LAST = new Job(null, null);
    }

    @FunctionalInterface
    private interface Work<R> {
        R on(Decoder decoder, int rank);
    }

    /**
     * Starts the ranks and loads the model; returns when it is loaded.
     *
     * @param folder the folder of a Hugging Face checkpoint
     * @param numRanks at least 1; the number of experts must be a multiple of it
     * @throws IllegalArgumentException if there are no ranks, the number of experts is no multiple
     *     of them, the family of the model is not supported, or its rows cannot travel as the
     *     options say
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
        options.transport().requireHidden(layers.hidden());
        PromptLimits limits = new PromptLimits(options, config.number("vocab_size"));
        DecoderService service = new DecoderService(numRanks, limits);
        Thread.ofPlatform()
                .name("deepep-decoder")
                .daemon()
                .start(() -> service.runRanks(folder, options));
        try {
            service.onAllRanks((_, _) -> null); // what fails while loading is thrown here
            return service;
        } catch (RuntimeException failure) {
            service.close();
            throw failure;
        }
    }

    private DecoderService(int numRanks, PromptLimits limits) {
        this.numRanks = numRanks;
        this.limits = limits;
        for (int rank = 0; rank < numRanks; rank++) {
            jobs.add(new LinkedBlockingQueue<>());
        }
        name = Beans.register("type=DecoderService", this);
    }

    private void runRanks(Path folder, DecoderOptions options) {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(communicator -> serve(communicator, folder, options));
        } catch (Throwable failure) {
            fail(failure);
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
            BlockingQueue<Job> own = jobs.get(communicator.rank());
            for (Job job = own.take(); !job.equals(Job.LAST); job = own.take()) {
                job.result.complete(job.work.on(decoder, communicator.rank()));
            }
        } catch (Throwable failure) {
            fail(failure);
            throw failure;
        }
    }

    /** Ends the other ranks too: they can do nothing without this one. */
    private void fail(Throwable failure) {
        failed.completeExceptionally(failure);
        end();
    }

    private void end() {
        synchronized (jobs) {
            if (!ending) {
                ending = true;
                jobs.forEach(queue -> queue.add(Job.LAST));
            }
        }
    }

    /**
     * Continues prompts by new tokens.
     *
     * @param prompts the tokens of each prompt, at least one
     * @param samplers makes the sampler of each rank, given its number
     * @param endTokens stops soon after every prompt has got one of these: then all get fewer new
     *     tokens
     * @return the new tokens of each prompt
     * @throws IllegalArgumentException if a prompt or a sampler is refused; the next request is
     *     served
     * @throws IllegalStateException if the service is closed
     * @throws CompletionException if a rank has failed, with the cause; then all ranks end
     */
    public synchronized List<long[]> generate(
            List<long[]> prompts,
            int numNewTokens,
            IntFunction<Sampler> samplers,
            Set<Integer> endTokens) {
        check(prompts, numNewTokens);
        // Made here, because what a rank throws ends it.
        List<Sampler> ofRanks =
                IntStream.range(0, numRanks)
                        .mapToObj(
                                rank ->
                                        Objects.requireNonNull(
                                                samplers.apply(rank),
                                                () -> "samplers made null for rank " + rank))
                        .toList();
        return gathered(
                prompts.size(),
                (decoder, rank) ->
                        decoder.generate(
                                dealtTo(rank, prompts),
                                numNewTokens,
                                ofRanks.get(rank),
                                endTokens));
    }

    /** The same with as many new tokens as are asked for. */
    public List<long[]> generate(
            List<long[]> prompts, int numNewTokens, IntFunction<Sampler> samplers) {
        return generate(prompts, numNewTokens, samplers, Set.of());
    }

    /** Computes the logits [V] after each prompt. */
    public synchronized List<float[]> logits(List<long[]> prompts) {
        check(prompts, 1);
        return gathered(prompts.size(), (decoder, rank) -> decoder.logits(dealtTo(rank, prompts)));
    }

    private void check(List<long[]> prompts, int numNewTokens) {
        for (int rank = 0; rank < numRanks; rank++) {
            limits.check(dealtTo(rank, prompts), numNewTokens);
        }
    }

    private <P> List<P> dealtTo(int rank, List<P> prompts) {
        List<P> dealt = new ArrayList<>();
        for (int i = rank; i < prompts.size(); i += numRanks) {
            dealt.add(prompts.get(i));
        }
        return dealt;
    }

    private <R> List<R> gathered(int count, Work<List<R>> work) {
        if (count == 0) {
            return List.of();
        }
        List<List<R>> perRank = onAllRanks(work);
        List<R> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(perRank.get(i % numRanks).get(i / numRanks));
        }
        return all;
    }

    /** Runs the same work on every rank; a rank's failure is everyone's. */
    @SuppressWarnings("unchecked") // a job's result is what its work returns
    private <R> List<R> onAllRanks(Work<R> work) {
        List<CompletableFuture<Object>> results = new ArrayList<>();
        synchronized (jobs) {
            if (ending) {
                throw failed.isDone()
                        ? new CompletionException(failed.exceptionNow())
                        : new IllegalStateException("the service is closed; start another");
            }
            for (BlockingQueue<Job> queue : jobs) {
                Job job = new Job(work, new CompletableFuture<>());
                queue.add(job);
                results.add(job.result);
            }
        }
        List<R> values = new ArrayList<>();
        for (CompletableFuture<Object> result : results) {
            values.add((R) CompletableFuture.anyOf(result, failed).join());
        }
        return values;
    }

    @Override
    public int getNumRanks() {
        return numRanks;
    }

    @Override
    public boolean isHealthy() {
        return !failed.isDone();
    }

    @Override
    public String getLastFailure() {
        return failed.isDone() ? failed.exceptionNow().toString() : "";
    }

    /** Ends the threads of the ranks, after the request that runs, and closes the model. */
    @Override
    public void close() {
        end();
        ended.join();
        Beans.unregister(name);
    }
}
