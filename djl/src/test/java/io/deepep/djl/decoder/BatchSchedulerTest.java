package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import io.deepep.DType;
import io.deepep.djl.decoder.Golden.Prompt;
import io.deepep.djl.exchange.Transport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests of several clients at once get what each would have got alone. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BatchSchedulerTest {
    private static final int NUM_RANKS = 2;

    /** Of which a rank has two sequences at a time, so that requests wait for each other. */
    private static final DecoderOptions FEW =
            new DecoderOptions(2, 128, 64, DType.F32, Transport.BF16);

    private static DecoderService start(DecoderOptions options) throws Exception {
        return DecoderService.start(Golden.folder("mixtral"), NUM_RANKS, options);
    }

    /** The long one waits within a step for the end of the short one, which came later. */
    @Test
    void aShortRequestDoesNotWaitForALongOne() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch answered = new CountDownLatch(1);
        try (DecoderService service = start(FEW)) {
            Thread later =
                    Thread.ofPlatform()
                            .unstarted(
                                    () -> {
                                        assertThat(generate(service, prompt, 3, Sampler.greedy()))
                                                .containsExactly(first(prompt, 3));
                                        answered.countDown();
                                    });
            Sampler waiting =
                    new Sampler() {
                        private int numTokens;

                        @Override
                        public NDArray next(NDArray logits) {
                            switch (++numTokens) {
                                case 2 -> {
                                    begun.countDown();
                                    while (service.getWaitingRequests() == 0) {
                                        Thread.onSpinWait();
                                    }
                                }
                                case 40 -> {
                                    await(answered);
                                    assertThat(service.getRunningRequests()).isOne();
                                    assertThat(service.getWaitingRequests()).isZero();
                                }
                                default -> {}
                            }
                            return Sampler.greedy().next(logits);
                        }
                    };
            Thread starting = startAfter(begun, later::start);
            assertThat(generate(service, prompt, 60, waiting)).containsExactly(first(prompt, 60));
            starting.join();
            later.join();
            assertThat(service.getRunningRequests()).isZero();
        }
    }

    @Test
    void manyClients() throws Exception {
        List<Prompt> prompts = Golden.of("mixtral").prompts();
        try (DecoderService service = start(FEW);
                ExecutorService clients = Executors.newFixedThreadPool(6)) {
            List<Future<?>> all = new ArrayList<>();
            for (int client = 0; client < 6; client++) {
                SplittableRandom random = new SplittableRandom(client);
                all.add(
                        clients.submit(
                                () -> {
                                    for (int i = 0; i < 8; i++) {
                                        check(service, prompts, random);
                                    }
                                }));
            }
            for (Future<?> each : all) {
                each.get();
            }
        }
    }

    /** Some choose among all tokens, some among the likeliest ones, in calls that they share. */
    @Test
    void clientsWithSamplersOfTheirOwn() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        List<Supplier<Sampler>> samplers =
                List.of(
                        () -> Sampler.topP(6, 1, 3),
                        () -> Sampler.topP(9, .9, 4),
                        Sampler::greedy,
                        () -> Sampler.topP(9, 1, 5),
                        () -> logits -> logits.argMin(-1),
                        () -> Sampler.topP(6, .8, 6));
        DecoderOptions roomy = new DecoderOptions(8, 128, 64, DType.F32, Transport.BF16);
        CountDownLatch all = new CountDownLatch(samplers.size());
        try (DecoderService service = start(roomy);
                ExecutorService clients = Executors.newFixedThreadPool(samplers.size())) {
            List<long[]> alone = new ArrayList<>();
            List<Future<long[]>> together = new ArrayList<>();
            for (Supplier<Sampler> each : samplers) {
                alone.add(generate(service, prompt, 40, each.get()));
            }
            assertThat(alone.stream().map(Arrays::toString)).doesNotHaveDuplicates();
            for (Supplier<Sampler> each : samplers) {
                together.add(
                        clients.submit(
                                () -> {
                                    all.countDown();
                                    await(all);
                                    return generate(service, prompt, 40, each.get());
                                }));
            }
            for (int i = 0; i < samplers.size(); i++) {
                assertThat(together.get(i).get()).as("sampler %s", i).isEqualTo(alone.get(i));
            }
        }
    }

    /** A request of one to four prompts; every third one ends early. Samplers see theirs alone. */
    private static void check(
            DecoderService service, List<Prompt> prompts, SplittableRandom random) {
        List<Prompt> chosen =
                random.ints(random.nextInt(1, 5), 0, prompts.size())
                        .mapToObj(prompts::get)
                        .filter(prompt -> prompt.ids().length <= 32)
                        .toList();
        int count = random.nextInt(1, 50);
        boolean ends = random.nextInt(3) == 0 && !chosen.isEmpty();
        Set<Integer> endTokens =
                ends ? Set.of((int) chosen.getFirst().tokens()[random.nextInt(20)]) : Set.of();
        int[] numCalls = new int[NUM_RANKS];
        List<long[]> added =
                service.generate(
                        chosen.stream().map(Prompt::ids).toList(),
                        count,
                        share ->
                                logits -> {
                                    int own = (chosen.size() - share + NUM_RANKS - 1) / NUM_RANKS;
                                    assertThat(logits.getShape().get(0)).isEqualTo(own);
                                    numCalls[share]++;
                                    return Sampler.greedy().next(logits);
                                },
                        endTokens);
        assertThat(added).hasSameSizeAs(chosen);
        for (int share = 0; share < Math.min(NUM_RANKS, chosen.size()); share++) {
            assertThat(numCalls[share]).isEqualTo(added.getFirst().length);
        }
        for (int i = 0; i < chosen.size(); i++) {
            int made = added.get(i).length;
            assertThat(made).isBetween(ends ? 1 : count, count);
            assertThat(added.get(i)).containsExactly(first(chosen.get(i), made));
            if (made < count) {
                assertThat(Arrays.stream(added.get(i)).boxed().map(Math::toIntExact))
                        .containsAnyElementsOf(endTokens);
            }
        }
    }

    /** One that runs, and one that waits for its slots. */
    @Test
    void anInterruptedClientMakesRoomForOthers() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        AtomicInteger numTokens = new AtomicInteger();
        Sampler sampler =
                logits -> {
                    if (numTokens.incrementAndGet() == 2) {
                        begun.countDown();
                        await(left);
                    }
                    return Sampler.greedy().next(logits);
                };
        List<long[]> all = Collections.nCopies(2 * NUM_RANKS, prompt.ids());
        AtomicInteger numTold = new AtomicInteger();
        try (DecoderService service = start(FEW)) {
            Thread running = startClient(() -> generate(service, prompt, 60, sampler), numTold);
            await(begun);
            Thread waiting =
                    startClient(() -> service.generate(all, 60, _ -> Sampler.greedy()), numTold);
            while (service.getWaitingRequests() == 0) {
                Thread.onSpinWait();
            }
            for (Thread client : List.of(waiting, running)) {
                client.interrupt();
                client.join();
            }
            assertThat(numTold).hasValue(2);
            assertThat(service.getWaitingRequests()).isZero();
            left.countDown();
            assertThat(service.generate(all, 3, _ -> Sampler.greedy()))
                    .allSatisfy(tokens -> assertThat(tokens).containsExactly(first(prompt, 3)));
            assertThat(numTokens).hasValueLessThan(60);
        }
    }

    private static Thread startClient(ThrowingCallable request, AtomicInteger numTold) {
        return Thread.ofPlatform()
                .start(
                        () -> {
                            assertThatThrownBy(request)
                                    .isInstanceOf(IllegalStateException.class)
                                    .hasMessageContaining("interrupted");
                            assertThat(Thread.currentThread().isInterrupted()).isTrue();
                            numTold.incrementAndGet();
                        });
    }

    /** Those that run are served; those that wait are refused. */
    @Test
    void closeAwaitsWhatRuns() throws Exception {
        Prompt prompt = Golden.of("mixtral").prompts().get(1);
        DecoderService service = start(FEW);
        CountDownLatch begun = new CountDownLatch(1);
        Thread closing = startAfter(begun, service::close);
        Sampler sampler =
                logits -> {
                    begun.countDown();
                    awaitWaiting(closing);
                    return Sampler.greedy().next(logits);
                };
        assertThat(generate(service, prompt, 40, sampler)).containsExactly(first(prompt, 40));
        closing.join();
    }

    private static long[] generate(
            DecoderService service, Prompt prompt, int count, Sampler sampler) {
        return service.generate(List.of(prompt.ids()), count, _ -> sampler).getFirst();
    }

    private static long[] first(Prompt prompt, int count) {
        return Arrays.copyOf(prompt.tokens(), count);
    }

    private static Thread startAfter(CountDownLatch latch, Runnable action) {
        return Thread.ofPlatform()
                .start(
                        () -> {
                            await(latch);
                            action.run();
                        });
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    /** Until it has made its call and waits for the ranks. */
    private static void awaitWaiting(Thread thread) {
        while (thread.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
    }
}
