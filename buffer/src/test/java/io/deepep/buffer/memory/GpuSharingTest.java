package io.deepep.buffer.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.NormalDefaults;
import io.deepep.NormalLimits;
import io.deepep.buffer.Placed;
import io.deepep.buffer.memory.GpuSharing.Gpu;
import io.deepep.buffer.memory.GpuSharing.Launches;
import io.deepep.buffer.memory.GpuSharing.Limit;
import io.deepep.buffer.memory.GpuSharing.Seat;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.GpuShare;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which placements of ranks on GPUs are refused. */
class GpuSharingTest {
    private static final Gpu A = new Gpu("a", 132, "NVIDIA H200");
    private static final Launches CONCURRENT = Launches.unlimited(false);
    private static final Launches ON_DEFAULT_STREAM = Launches.unlimited(true);
    private static final Launches BLOCKING = new Launches(false, 1, Limit.BLOCKING);
    private static final Gpu B = new Gpu("b", 132, "NVIDIA H200");

    private static Map<String, Integer> each(int dispatch, int combine) {
        return Map.of("dispatchConfig", dispatch, "combineConfig", combine);
    }

    /** Several nodes. */
    private static GpuSharing of(List<Gpu> gpus, Map<String, Integer> numSms) {
        return of(gpus, numSms, 2);
    }

    /** Ranks that are threads of one process. */
    private static GpuSharing of(List<Gpu> gpus, Map<String, Integer> numSms, int fewest) {
        List<Seat> seats = gpus.stream().map(gpu -> new Seat(gpu, "one", 100, CONCURRENT)).toList();
        return GpuSharing.of(seats, numSms, fewest);
    }

    /** Two ranks in each of so many processes, which MPS gives a part of 26 multiprocessors. */
    private static GpuSharing underMps(int processes, int percent, int numSms) {
        Gpu part = new Gpu("a", 26, "NVIDIA H100");
        List<Seat> seats =
                IntStream.range(0, 2 * processes)
                        .mapToObj(
                                rank -> new Seat(part, "process " + rank / 2, percent, CONCURRENT))
                        .toList();
        return GpuSharing.of(seats, each(numSms, numSms), 2);
    }

    /** Half of it for each of two ranks, and a half for others that the driver puts there. */
    @Test
    void processesUseHalfOfTheirShare() {
        GpuSharing sharing = underMps(5, 20, 6);
        assertThat(sharing.mostRanksPerGpu()).isEqualTo(10);
        assertThat(sharing.share().parts()).isEqualTo(4);
        assertThatThrownBy(() -> underMps(5, 20, 8))
                .hasMessageContaining(
                        "ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] that share one NVIDIA H100 with 26;"
                                + " lower Config.numSms to 6 or less");
    }

    @Test
    void aProcessHasItsShareForItself() {
        assertThat(underMps(1, 20, 12).share().parts()).isEqualTo(2);
    }

    /** A kernel of the smallest share waits for a rank that would not fit there. */
    @Test
    void theSmallestShareDecides() {
        List<Seat> seats =
                List.of(
                        new Seat(new Gpu("a", 78, "NVIDIA H100"), "large", 60, CONCURRENT),
                        new Seat(new Gpu("a", 26, "NVIDIA H100"), "small", 20, CONCURRENT));
        assertThat(GpuSharing.of(seats, each(12, 12), 2).share().parts()).isEqualTo(2);
        assertThatThrownBy(() -> GpuSharing.of(seats, each(14, 14), 2))
                .hasMessageContaining("share one NVIDIA H100 with 26; lower Config.numSms to 12");
    }

    /** Whatever part of it each process sees. */
    @Test
    void defaultStreamsOfASharedGpuAreRefused() {
        Seat alone = new Seat(B, "two", 100, ON_DEFAULT_STREAM);
        Seat large = new Seat(new Gpu("a", 78, "NVIDIA H100"), "large", 60, CONCURRENT);
        Seat small = new Seat(new Gpu("a", 26, "NVIDIA H100"), "small", 20, ON_DEFAULT_STREAM);
        assertThat(GpuSharing.of(List.of(large, alone), each(2, 2), 2).mostRanksPerGpu())
                .isEqualTo(1);
        assertThatThrownBy(() -> GpuSharing.of(List.of(large, alone, small), each(2, 2), 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("rank 2 is a default stream of its NVIDIA H100");
    }

    /** The ranks count their blocks in the same way, whatever their own streams have. */
    @Test
    void theSmallestPartIsForAll() {
        Gpu part = new Gpu("b", 16, "NVIDIA H200");
        assertThat(of(List.of(A, part, A), each(2, 2)).share()).isEqualTo(new GpuShare(16, 1));
        assertThat(of(List.of(A, part, A, A, A, A, A, A, A), each(2, 2)).share())
                .isEqualTo(new GpuShare(132, 8));
        assertThatThrownBy(() -> of(List.of(A, part), each(24, 24)))
                .hasMessageContaining("ranks [1] that share one NVIDIA H200 with 16; lower");
    }

    /** Of shares that are more than the GPU together, none is sure to be there. */
    @Test
    void sharesThatAreTooLargeAreDivided() {
        assertThat(underMps(6, 20, 2).share().parts()).isEqualTo(12);
        assertThatThrownBy(() -> underMps(6, 20, 4))
                .hasMessageContaining("lower Config.numSms to 2");
    }

    @Test
    void aGpuOfOnesOwnHasRoomForAllOfIt() {
        GpuSharing alone = of(List.of(A, B), each(132, 24));
        assertThat(alone.mostRanksPerGpu()).isEqualTo(1);
        assertThatThrownBy(() -> of(List.of(A, B), each(134, 24)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "dispatchConfig needs 134 multiprocessors for each of the ranks [0] that share one"
                                + " NVIDIA H200 with 132; lower Config.numSms to 132 or less, or put fewer ranks"
                                + " on the GPU");
    }

    /** Each launch would wait for the other's. */
    @Test
    void launchesThatBlockAreForOneRankOfAProcess() {
        List<Seat> seats =
                Stream.of("one", "two", "two", "one")
                        .map(process -> new Seat(A, process, 50, BLOCKING))
                        .toList();
        assertThatThrownBy(() -> GpuSharing.of(seats, each(24, 24), 2))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("CUDA_LAUNCH_BLOCKING")
                .hasMessageContaining("the ranks [0, 3], which are of one process and share one");
        assertThat(GpuSharing.of(seats.subList(0, 2), each(24, 24), 2).mostRanksPerGpu())
                .isEqualTo(2);
        List<Seat> apart =
                List.of(new Seat(A, "one", 100, BLOCKING), new Seat(B, "one", 100, BLOCKING));
        assertThat(GpuSharing.of(apart, each(24, 24), 2).mostRanksPerGpu()).isEqualTo(1);
    }

    /** Kernels of the third rank may be in a queue behind one that waits for them. */
    @Test
    void ranksOfAProcessNeedAQueueEach() {
        Launches two = new Launches(false, 2, Limit.QUEUES);
        List<Seat> seats =
                Stream.of("one", "two", "two", "one", "two")
                        .map(process -> new Seat(A, process, 50, two))
                        .toList();
        assertThatThrownBy(() -> GpuSharing.of(seats, each(24, 24), 2))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(
                        "with CUDA_DEVICE_MAX_CONNECTIONS=2, the kernels of the ranks [1, 2, 4]")
                .hasMessageContaining("leave the variable out, or start one process");
        assertThat(GpuSharing.of(seats.subList(0, 4), each(24, 24), 2).mostRanksPerGpu())
                .isEqualTo(4);
    }

    @Test
    void aDriverThatSomebodyElseStartedHasFewQueues() {
        Seat seat = new Seat(A, "one", 100, new Launches(false, 8, Limit.EARLIER_START));
        assertThatThrownBy(() -> GpuSharing.of(Collections.nCopies(9, seat), each(2, 2), 2))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageStartingWith(
                        "with the 8 hardware queues of a driver that another library started first, the kernels of the ranks")
                .hasMessageContaining("set CUDA_DEVICE_MAX_CONNECTIONS=32 for the process, or");
        assertThat(GpuSharing.of(Collections.nCopies(8, seat), each(2, 2), 2).mostRanksPerGpu())
                .isEqualTo(8);
    }

    @Test
    void variablesLimitLaunches() {
        assertThat(launches(Map.of(), false)).isEqualTo(CONCURRENT);
        assertThat(launches(Map.of(), true)).isEqualTo(new Launches(false, 8, Limit.EARLIER_START));
        for (boolean startedBefore : new boolean[] {false, true}) {
            assertThat(launches(Map.of("CUDA_LAUNCH_BLOCKING", "1"), startedBefore))
                    .isEqualTo(BLOCKING);
            String queues = "CUDA_DEVICE_MAX_CONNECTIONS";
            for (int fewer : new int[] {1, 8, 10, 31}) {
                assertThat(launches(Map.of(queues, "" + fewer), startedBefore))
                        .isEqualTo(new Launches(false, fewer, Limit.QUEUES));
            }
            for (String other : List.of("", "0", "many", "1 2", "32", "100")) {
                assertThat(launches(Map.of(queues, other), startedBefore)).isEqualTo(CONCURRENT);
            }
        }
        assertThat(launches(Map.of("CUDA_LAUNCH_BLOCKING", "0"), false)).isEqualTo(CONCURRENT);
    }

    private static Launches launches(Map<String, String> variables, boolean startedBefore) {
        BufferOptions options =
                options(new Placed(0, 2, 2), Config.recommended(2), NormalDefaults.recommended(2));
        return Launches.of(options, variables, startedBefore);
    }

    @Test
    void whoMakesAnotherCallIsNamed() {
        Seat seat = new Seat(A, "one", 100, ON_DEFAULT_STREAM);
        assertThat(Seat.decode(1, seat.encode())).isEqualTo(seat);
        for (String other :
                List.of(
                        "",
                        "join",
                        "a b c d e f",
                        "a 1 one 100 true 8 queues b",
                        "a 1 one 100 true 9999999999 NONE b")) {
            assertThatThrownBy(() -> Seat.decode(1, other.getBytes(StandardCharsets.UTF_8)))
                    .isInstanceOf(RankMismatchException.class)
                    .hasMessageStartingWith("open: rank 1 makes a different call");
        }
    }

    /** Of a profile, or for faster links: nobody chose it for this many ranks. */
    @Test
    void aDefaultIsLoweredAndAnotherNumberRefused() {
        Placed place = new Placed(0, 8, 8);
        CudaDevice gpu = new CudaDevice(0, "B200", "a", "0000:01:00.0", 10, 0, 148, 1, 1, 1, true);
        Config large = Config.recommended(8).withNumSms(40);
        NormalDefaults defaults = new NormalDefaults(large, large);
        assertThat(GpuSharing.agree(place, options(place, large, defaults), gpu, 148).share())
                .isEqualTo(new GpuShare(148, 8));
        BufferOptions chosen = options(place, large, NormalDefaults.recommended(8));
        assertThatThrownBy(() -> GpuSharing.agree(place, chosen, gpu, 148))
                .hasMessageContaining("Config needs 40 multiprocessors for each of the ranks")
                .hasMessageContaining("lower Config.numSms to 18 or less");
    }

    private static BufferOptions options(Placed place, Config config, NormalDefaults defaults) {
        return new BufferOptions(
                place,
                new EpTopology(place.rank(), place.size(), place.size()),
                Device.cuda(0),
                null,
                Network.auto(),
                NormalLimits.of(1, 128, 1, 8),
                null,
                0,
                0,
                config,
                config,
                defaults,
                Duration.ofSeconds(5),
                null,
                false,
                List.of());
    }

    /** Also for the rank that has a GPU for itself: all ranks come to one verdict. */
    @Test
    void theFullestGpuDecides() {
        List<Gpu> gpus = List.of(A, B, A, A);
        assertThat(of(gpus, each(44, 24)).mostRanksPerGpu()).isEqualTo(3);
        assertThatThrownBy(() -> of(gpus, each(24, 46)))
                .hasMessageContainingAll(
                        "combineConfig needs 46 multiprocessors for each of the ranks [0, 2, 3]",
                        "lower Config.numSms to 44 or less");
    }

    @Test
    void manyRanksAreNamedByTheFirstAndTheLast() {
        assertThatThrownBy(() -> of(Collections.nCopies(133, A), each(2, 2)))
                .hasMessageContaining("for each of the ranks 0 to 132 (133 ranks) that share one");
    }

    @Test
    void moreRanksThanAGpuHasMultiprocessors() {
        Gpu small = new Gpu("c", 5, "small");
        assertThatThrownBy(() -> of(List.of(small, small, small), each(2, 2)))
                .hasMessageContaining(
                        "ranks [0, 1, 2] that share one small with 5; put fewer ranks");
        assertThat(of(List.of(small, small), each(2, 2)).mostRanksPerGpu()).isEqualTo(2);
    }

    /** 72 ranks of one node have room on one GPU, 136 have not. */
    @Test
    void aRankOfOneNodeDoesWithOne() {
        assertThat(of(Collections.nCopies(72, A), each(1, 1), 1).mostRanksPerGpu()).isEqualTo(72);
        assertThatThrownBy(() -> of(Collections.nCopies(72, A), each(2, 1), 1))
                .hasMessageContaining("with 132; lower Config.numSms to 1 or less");
        assertThatThrownBy(() -> of(Collections.nCopies(136, A), each(1, 1), 1))
                .hasMessageEndingWith("with 132; put fewer ranks on the GPU");
    }

    @ParameterizedTest
    @ValueSource(strings = {"A B", "A A", "A A B B", "A B A B"})
    void nvshmemTakesNeighboursOrRanksDealtOutInTurn(String placement) {
        place(placement).requireRegular();
    }

    /** NVSHMEM ends the process or hangs, so it is not started. */
    @ParameterizedTest
    @ValueSource(strings = {"A B A", "A A B", "A B B A", "A B A A B B"})
    void otherPlacementsAreRefusedWithoutAsking(String placement) {
        assertThatThrownBy(() -> place(placement).requireRegular())
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("needs the same number of ranks on every GPU");
    }

    private static GpuSharing place(String placement) {
        List<Gpu> gpus =
                Stream.of(placement.split(" ", -1)).map(name -> name.equals("A") ? A : B).toList();
        return of(gpus, Map.of());
    }
}
