package io.deepep.djl.example;

import io.deepep.InProcessGroup;
import io.deepep.RankFailedException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;

/**
 * A model on the ranks of one process, each with a thread and its own experts. Prompts are dealt to
 * the ranks in turn; all ranks make every step, because layers are collective.
 */
final class MoeService implements AutoCloseable {
    /** What a rank does next; null ends it. */
    private record Job(Function<RankModel, ?> work, CompletableFuture<Object> result) {
        private static final Job LAST = new Job(null, null);
    }

    private final int numRanks;
    private final List<BlockingQueue<Job>> jobs = new ArrayList<>();
    private final CompletableFuture<Void> over = new CompletableFuture<>();

    /**
     * Starts the ranks, and loads the model.
     *
     * @param folder with safetensors
     */
    MoeService(Path folder, ModelSize size, int numRanks, boolean lowLatency) {
        this.numRanks = numRanks;
        for (int rank = 0; rank < numRanks; rank++) {
            jobs.add(new LinkedBlockingQueue<>());
        }
        Thread.ofPlatform()
                .name("moe-service")
                .daemon()
                .start(() -> runRanks(folder, size, lowLatency));
        onAllRanks(_ -> null); // what fails while loading is thrown here
    }

    private void runRanks(Path folder, ModelSize size, boolean lowLatency) {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        try (RankModel model =
                                RankModel.load(communicator, folder, size, lowLatency)) {
                            work(model, jobs.get(communicator.rank()));
                        } catch (Throwable failure) {
                            over.completeExceptionally(failure);
                            throw failure;
                        }
                    });
            over.complete(null);
        } catch (InterruptedException | RankFailedException failure) {
            over.completeExceptionally(failure);
        }
    }

    private static void work(RankModel model, BlockingQueue<Job> jobs) throws InterruptedException {
        for (Job job = jobs.take(); !job.equals(Job.LAST); job = jobs.take()) {
            job.result.complete(job.work.apply(model));
        }
    }

    /**
     * Continues prompts greedily.
     *
     * @param prompts token numbers, each at least one
     * @return the new tokens of each prompt
     */
    synchronized List<List<Long>> generate(List<List<Long>> prompts, int numNewTokens) {
        List<List<List<Long>>> perRank =
                onAllRanks(model -> model.generate(dealtTo(model.rank(), prompts), numNewTokens));
        return gathered(prompts.size(), perRank);
    }

    /** The logits [V] after the last token of each prompt. */
    synchronized List<float[]> logits(List<List<Long>> prompts) {
        return gathered(
                prompts.size(),
                onAllRanks(model -> model.lastLogits(dealtTo(model.rank(), prompts))));
    }

    private <P> List<P> dealtTo(int rank, List<P> prompts) {
        List<P> dealt = new ArrayList<>();
        for (int i = rank; i < prompts.size(); i += numRanks) {
            dealt.add(prompts.get(i));
        }
        return dealt;
    }

    private <R> List<R> gathered(int count, List<List<R>> perRank) {
        List<R> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(perRank.get(i % numRanks).get(i / numRanks));
        }
        return all;
    }

    /** Runs the same work on every rank; a rank's failure is everyone's. */
    @SuppressWarnings("unchecked") // a job's result is what its work returns
    private <R> List<R> onAllRanks(Function<RankModel, R> work) {
        List<CompletableFuture<Object>> results = new ArrayList<>();
        for (BlockingQueue<Job> queue : jobs) {
            Job job = new Job(work, new CompletableFuture<>());
            queue.add(job);
            results.add(job.result);
        }
        List<R> values = new ArrayList<>();
        for (CompletableFuture<Object> result : results) {
            values.add((R) CompletableFuture.anyOf(result, over).join());
        }
        return values;
    }

    /** Ends the ranks. */
    @Override
    public void close() {
        jobs.forEach(queue -> queue.add(Job.LAST));
        over.handle((_, failure) -> failure).join();
    }
}
