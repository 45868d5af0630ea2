package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.NormalDefaults;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import io.deepep.normal.NormalConfigs;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The ranks that share a GPU, as threads or processes. They share its multiprocessors: a kernel
 * that waits for a peer occupies its multiprocessors meanwhile, so the peer's kernel must fit
 * beside it.
 *
 * @param mostRanksPerGpu most ranks on a GPU; the same on every rank, so that all ranks judge a
 *     configuration in the same way
 * @param share of the GPU that has the fewest multiprocessors for each kernel; the same on every
 *     rank
 * @param gpuIdxs by rank: the GPUs, numbered in the order in which ranks first name them
 */
public record GpuSharing(int mostRanksPerGpu, GpuShare share, List<Integer> gpuIdxs) {
    /**
     * MPS may give two processes the same multiprocessors, even if the shares of all are no more
     * than the GPU: of an H100, four processes with 25 or 24 % each never ran side by side when
     * each used all of its share; with 20 % they did.
     */
    private static final int PARTS_OF_A_SHARE = 2;

    /** Ranks that a message names one by one. */
    private static final int MOST_NAMED = 16;

    public GpuSharing {
        gpuIdxs = List.copyOf(gpuIdxs);
    }

    /**
     * NVSHMEM numbers the PEs of a GPU, and the first ones of all GPUs, by a start and a stride. Of
     * other placements it ends the process, or hangs.
     *
     * @throws DeepEpUnavailableException on every rank, unless every GPU has the same number of
     *     ranks, and these are neighbours or dealt out in turn
     */
    void requireRegular() {
        int numGpus = (int) gpuIdxs.stream().distinct().count();
        boolean even = mostRanksPerGpu * numGpus == gpuIdxs.size();
        boolean inTurn = true;
        boolean neighbours = true;
        for (int rank = 0; rank < gpuIdxs.size(); rank++) {
            inTurn &= gpuIdxs.get(rank) == rank % numGpus;
            neighbours &= gpuIdxs.get(rank) == rank / mostRanksPerGpu;
        }
        if (!even || !(inTurn || neighbours)) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM needs the same number of ranks on every GPU, either consecutive ranks or in turn; the ranks' GPUs are "
                            + gpuIdxs,
                    "start one rank per GPU, or the same number on each");
        }
    }

    /**
     * Demands that new ranks have the GPUs of those whose places they take, because places decide
     * how many blocks a rank has: collective.
     *
     * @param before what a rank that stays knows; of a new one, this
     * @throws DeepEpUnavailableException on every rank
     */
    public void requireKept(GpuSharing before, HeapRanks ranks) {
        new Meeting(
                        ranks.communicator(),
                        ranks.timeout(),
                        "the new ranks are on other GPUs than those whose places they take",
                        "give a new rank the GPU of the old one")
                .step(
                        () -> {
                            if (!equals(before)) {
                                throw new IllegalStateException(
                                        "the GPUs of the ranks were " + before.gpuIdxs());
                            }
                        });
    }

    /**
     * A GPU as a rank sees it.
     *
     * @param numSms multiprocessors that the rank's stream may use. Those of ranks on one GPU may
     *     differ: under MPS, and if a stream belongs to a green context
     */
    record Gpu(String uuid, int numSms, String name) {}

    /** What limits the ranks of a process whose kernels can run on a GPU at once. */
    enum Limit {
        NONE("", ""),
        BLOCKING("CUDA_LAUNCH_BLOCKING=1", "leave the variable out"),
        QUEUES("CUDA_DEVICE_MAX_CONNECTIONS=%s", "leave the variable out"),
        EARLIER_START(
                "the %s hardware queues of a driver that another library started first",
                "set CUDA_DEVICE_MAX_CONNECTIONS=32 for the process");

        private final String text;
        private final String cure;

        Limit(String text, String cure) {
            this.text = text;
            this.cure = cure;
        }
    }

    /**
     * How a rank launches its kernels.
     *
     * @param onDefaultStream of the GPU, where kernels of other ranks wait for them
     * @param mostRanks of the process whose kernels can run on a GPU at once
     * @param limit why no more
     */
    record Launches(boolean onDefaultStream, int mostRanks, Limit limit) {
        /** Fewer than the 32 that a process has unless it asks for less. */
        private static final String FEWER_QUEUES = "[1-9]|[12]\\d|3[01]";

        /** Of a driver that starts without the variable. */
        private static final int DEFAULT_QUEUES = 8;

        private static final int ANY_NUMBER = 999_999_999;

        /**
         * Those of a rank.
         *
         * @param startedBefore whether another library had started the driver
         */
        static Launches of(
                BufferOptions options, Map<String, String> variables, boolean startedBefore) {
            boolean onDefaultStream =
                    options.communicationStream() instanceof CudaStream given && given.isDefault();
            if (!variables.getOrDefault("CUDA_LAUNCH_BLOCKING", "0").equals("0")) {
                return new Launches(onDefaultStream, 1, Limit.BLOCKING);
            }
            String queues = variables.get("CUDA_DEVICE_MAX_CONNECTIONS");
            if (queues == null && startedBefore) {
                return new Launches(onDefaultStream, DEFAULT_QUEUES, Limit.EARLIER_START);
            }
            return queues != null && queues.matches(FEWER_QUEUES)
                    ? new Launches(onDefaultStream, Integer.parseInt(queues), Limit.QUEUES)
                    : unlimited(onDefaultStream);
        }

        static Launches unlimited(boolean onDefaultStream) {
            return new Launches(onDefaultStream, ANY_NUMBER, Limit.NONE);
        }
    }

    /**
     * What a rank says about its place.
     *
     * @param percent of the GPU that the process may use
     */
    record Seat(Gpu gpu, String process, int percent, Launches launches) {
        private static final String THIS_PROCESS = UUID.randomUUID().toString();
        private static final Pattern SAID =
                Pattern.compile(
                        "(\\S+) (\\d{1,9}) (\\S+) (\\d{1,9}) (true|false) (\\d{1,9}) (%s) (.*)"
                                .formatted(
                                        Stream.of(Limit.values())
                                                .map(Limit::name)
                                                .collect(Collectors.joining("|"))));

        static Seat of(CudaDevice device, int numSms, Launches launches) {
            Gpu gpu = new Gpu(device.uuid(), numSms, device.name());
            return new Seat(gpu, THIS_PROCESS, device.mpsPercentage(), launches);
        }

        byte[] encode() {
            return "%s %s %s %s %s %s %s %s"
                    .formatted(
                            gpu.uuid(),
                            gpu.numSms(),
                            process,
                            percent,
                            launches.onDefaultStream(),
                            launches.mostRanks(),
                            launches.limit(),
                            gpu.name())
                    .getBytes(StandardCharsets.UTF_8);
        }

        static Seat decode(int rank, byte[] message) {
            Matcher said = SAID.matcher(new String(message, StandardCharsets.UTF_8));
            if (!said.matches()) {
                throw RankMismatchException.ofCall("open", rank);
            }
            return new Seat(
                    new Gpu(said.group(1), Integer.parseInt(said.group(2)), said.group(8)),
                    said.group(3),
                    Integer.parseInt(said.group(4)),
                    new Launches(
                            Boolean.parseBoolean(said.group(5)),
                            Integer.parseInt(said.group(6)),
                            Limit.valueOf(said.group(7))));
        }
    }

    /**
     * Agrees with the other ranks on who shares which GPU. Collective.
     *
     * @param communicator this rank's end of the group
     * @param numSms multiprocessors of the device that this rank's stream may use
     * @throws IllegalArgumentException on every rank, if the kernels of the ranks on a GPU do not
     *     fit there at once, or one of them would run on the GPU's default stream
     * @throws DeepEpUnavailableException on every rank, if the driver does not run the kernels of
     *     all ranks that one process has on a GPU at once
     */
    public static GpuSharing agree(
            Communicator communicator, BufferOptions options, CudaDevice device, int numSms) {
        Launches launches = Launches.of(options, System.getenv(), CudaDriver.wasStartedBefore());
        Seat own = Seat.of(device, numSms, launches);
        List<Seat> seats =
                Meeting.gather(communicator, own.encode(), options.meetingTimeout(), Seat::decode);
        if (options.normal() == null) {
            return of(seats, Map.of("lowLatency", 1), 1);
        }
        int fewest = NormalConfigs.fewestSms(options.topology());
        NormalDefaults defaults = options.defaults();
        return of(
                seats,
                Map.of(
                        "dispatchConfig",
                        numSms(options.dispatchConfig(), defaults.dispatch(), fewest),
                        "combineConfig",
                        numSms(options.combineConfig(), defaults.combine(), fewest)),
                fewest);
    }

    /** The default number shrinks to what there is, another one is the user's choice. */
    private static int numSms(Config config, Config byDefault, int fewest) {
        return config.equals(byDefault) ? fewest : config.numSms();
    }

    /**
     * Judges a placement.
     *
     * @param seats of every rank
     * @param numSms that each rank needs at once, by what asks for them
     * @param fewest that a rank can do with
     */
    static GpuSharing of(List<Seat> seats, Map<String, Integer> numSms, int fewest) {
        List<String> gpus = seats.stream().map(seat -> seat.gpu().uuid()).toList();
        Map<String, List<Integer>> ranksByGpu = byName(gpus);
        List<GpuShare> shares = new ArrayList<>();
        for (List<Integer> ranks : ranksByGpu.values()) {
            requireConcurrent(seats, ranks);
            Gpu gpu =
                    ranks.stream()
                            .map(rank -> seats.get(rank).gpu())
                            .min(Comparator.comparingInt(Gpu::numSms))
                            .orElseThrow();
            GpuShare share =
                    new GpuShare(gpu.numSms(), parts(ranks.stream().map(seats::get).toList()));
            new TreeMap<>(numSms)
                    .forEach(
                            (name, number) -> requireRoom(gpu, ranks, share, name, number, fewest));
            shares.add(share);
        }
        List<String> inOrder = List.copyOf(ranksByGpu.keySet());
        return new GpuSharing(
                most(ranksByGpu), least(shares), gpus.stream().map(inOrder::indexOf).toList());
    }

    private static void requireConcurrent(List<Seat> seats, List<Integer> ranks) {
        for (int rank : ranks) {
            Seat seat = seats.get(rank);
            requireQueues(seats, ranks, seat);
            if (seat.launches().onDefaultStream() && ranks.size() > 1) {
                throw new IllegalArgumentException(
                        ("communicationStream of rank %s is a default stream of its %s, where other ranks' kernels would wait behind its own;"
                                        + " give each rank on a shared GPU a stream created by cuStreamCreate")
                                .formatted(rank, seat.gpu().name()));
            }
        }
    }

    /** Kernels would wait for others that are behind them in a queue, or not even there. */
    private static void requireQueues(List<Seat> seats, List<Integer> ranks, Seat seat) {
        List<Integer> together =
                ranks.stream()
                        .filter(rank -> seats.get(rank).process().equals(seat.process()))
                        .toList();
        Launches launches = seat.launches();
        if (together.size() > launches.mostRanks()) {
            throw new DeepEpUnavailableException(
                    "with %s, the kernels of the ranks %s, which are of one process and share one %s, cannot run at once"
                            .formatted(
                                    launches.limit().text.formatted(launches.mostRanks()),
                                    named(together),
                                    seat.gpu().name()),
                    launches.limit().cure
                            + ", or start one process for each rank or one rank for each GPU");
        }
    }

    /** Ranks by the name that each of them has given, in the order in which they come. */
    private static Map<String, List<Integer>> byName(List<String> names) {
        return IntStream.range(0, names.size())
                .boxed()
                .collect(
                        Collectors.groupingBy(names::get, LinkedHashMap::new, Collectors.toList()));
    }

    private static int most(Map<String, List<Integer>> ranks) {
        return ranks.values().stream().mapToInt(List::size).max().orElse(0);
    }

    private static GpuShare least(List<GpuShare> shares) {
        return shares.stream().min(Comparator.comparingInt(GpuShare::smsPerPart)).orElseThrow();
    }

    /** Of the ranks of one GPU. */
    private static int parts(List<Seat> seats) {
        Map<String, List<Integer>> ranksByProcess =
                byName(seats.stream().map(Seat::process).toList());
        int percent =
                ranksByProcess.values().stream()
                        .mapToInt(ranks -> seats.get(ranks.getFirst()).percent())
                        .sum();
        return percent <= CudaDevice.WHOLE
                ? partsOfAShare(most(ranksByProcess), seats.size())
                : seats.size(); // no share is sure to be there
    }

    /**
     * The number of parts into which a process with its own share under MPS divides its
     * multiprocessors.
     */
    public static int partsOfAShare(int ranksOfProcess, int ranksOnGpu) {
        return Math.min(PARTS_OF_A_SHARE * ranksOfProcess, ranksOnGpu);
    }

    /** All of them, or of many the first and the last. */
    private static String named(List<Integer> ranks) {
        return ranks.size() <= MOST_NAMED
                ? ranks.toString()
                : "%s to %s (%s ranks)".formatted(ranks.getFirst(), ranks.getLast(), ranks.size());
    }

    private static void requireRoom(
            Gpu gpu, List<Integer> ranks, GpuShare share, String name, int number, int fewest) {
        int room = share.smsPerPart();
        if (number > room) {
            throw new IllegalArgumentException(
                    "%s needs %s multiprocessor%s for each of the ranks %s that share one %s with %s; %sput fewer ranks on the GPU"
                            .formatted(
                                    name,
                                    number,
                                    number == 1 ? "" : "s",
                                    named(ranks),
                                    gpu.name(),
                                    gpu.numSms(),
                                    room < fewest
                                            ? ""
                                            : "lower Config.numSms to " + room + " or less, or "));
        }
    }
}
