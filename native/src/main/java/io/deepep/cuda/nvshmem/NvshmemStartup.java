package io.deepep.cuda.nvshmem;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.deepep.Communicator;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.Meeting;
import io.deepep.spi.posix.SysFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The start of NVSHMEM on all ranks: checks, the unique id, the start itself, each agreed upon. */
record NvshmemStartup(
        NvshmemProcess process,
        NvshmemInstallation installation,
        NvshmemOptions options,
        PeMap peMap,
        NvshmemUserSettings user,
        Path sysfs) {
    private static final System.Logger LOG = System.getLogger(NvshmemStartup.class.getName());

    /** Of settings; no variable has it in its value. */
    private static final String SEPARATOR = "\0";

    /** Collective. */
    Nvshmem start(NvshmemDevice device, Communicator communicator, Duration timeout) {
        Meeting meeting = meeting(communicator, timeout, "NVSHMEM cannot start");
        NvshmemWorker worker = new NvshmemWorker(timeout);
        boolean[] entered = {false};
        try {
            NvshmemLibrary[] library = {null};
            List<String> settings =
                    meeting.together(
                            () -> {
                                checkPlugins();
                                checkNumHcas();
                                user.requireAgreement(options.environment());
                                process.enter(installation.library(), options.environment());
                                entered[0] = true;
                                library[0] = NvshmemLibrary.load(installation);
                                return shared(library[0].version());
                            });
            requireSame(settings);
            initialise(library[0], device, worker, meeting);
            return new Nvshmem(process, library[0], device, worker, peMap);
        } catch (RuntimeException | Error e) {
            if (entered[0]) {
                process.leave();
            }
            worker.close();
            throw e;
        }
    }

    static Meeting meeting(Communicator communicator, Duration timeout, String failure) {
        // Between two meetings a rank may spend up to the timeout in a native call.
        return new Meeting(
                communicator,
                timeout.multipliedBy(2),
                failure,
                "check the machine with deepep doctor");
    }

    /** What all ranks must have in common: each as NAME=VALUE. */
    private String shared(NvshmemVersion version) {
        SortedMap<String, String> settings = user.shared();
        settings.put("version", version.toString());
        settings.put("transport", options.transport().toString());
        settings.put("numQpsPerPe", Integer.toString(options.numQpsPerPe()));
        settings.put("qpDepth", Integer.toString(options.qpDepth()));
        settings.put("numHcas", Integer.toString(options.hcas().size()));
        settings.put("usePeerAccess", Boolean.toString(options.usePeerAccess()));
        settings.put("world", peMap.world().toString());
        return settings.entrySet().stream()
                .map(setting -> setting.getKey() + "=" + setting.getValue())
                .collect(Collectors.joining(SEPARATOR));
    }

    /**
     * Compares what {@link #shared} says on all ranks. Users may have set variables on some only.
     *
     * @throws RankMismatchException on every rank, with both values
     */
    private static void requireSame(List<String> gathered) {
        SortedMap<String, String> first = settings(gathered.getFirst());
        for (int rank = 1; rank < gathered.size(); rank++) {
            SortedMap<String, String> other = settings(gathered.get(rank));
            SortedMap<String, String> all = new TreeMap<>(first);
            all.putAll(other);
            for (String name : all.keySet()) {
                String value = first.getOrDefault(name, "nothing");
                String itsValue = other.getOrDefault(name, "nothing");
                if (!value.equals(itsValue)) {
                    throw RankMismatchException.of("NVSHMEM", name, 0, value, rank, itsValue);
                }
            }
        }
    }

    private static SortedMap<String, String> settings(String shared) {
        SortedMap<String, String> settings = new TreeMap<>();
        for (String setting : shared.split(SEPARATOR, -1)) {
            int equals = setting.indexOf('=');
            settings.put(setting.substring(0, equals), setting.substring(equals + 1));
        }
        return settings;
    }

    private void checkPlugins() {
        plugin(NvshmemInstallation.BOOTSTRAP, "libc6").check();
        transport().ifPresent(NvshmemPlugin::check);
    }

    private Optional<NvshmemPlugin> transport() {
        NvshmemTransport transport = options.transport();
        return transport.plugin().map(name -> plugin(name, transport.packages()));
    }

    private NvshmemPlugin plugin(String name, String packages) {
        return new NvshmemPlugin(installation.libraryFolder().resolve(name), packages);
    }

    private void checkNumHcas() {
        int numHcas = SysFiles.names(sysfs.resolve("class/infiniband")).size();
        if (options.transport().usesHcaList() && numHcas > NvshmemTransport.MAX_DEVICES) {
            throw new DeepEpUnavailableException(
                    "this host has %s RDMA devices, but NVSHMEM supports at most %s"
                            .formatted(numHcas, NvshmemTransport.MAX_DEVICES),
                    NvshmemTransport.TOO_MANY_DEVICES_CURE);
        }
    }

    private void initialise(
            NvshmemLibrary library, NvshmemDevice device, NvshmemWorker worker, Meeting meeting) {
        // NVSHMEM keeps pointers to these; never freed, because a lost thread may still use them.
        MemorySegment id = NvshmemStructs.uniqueId(Arena.global());
        MemorySegment attr = NvshmemStructs.initAttr(Arena.global());
        boolean root = peMap.rootRank() == peMap.topology().rank();
        List<String> ids =
                meeting.together(
                        () -> {
                            process.latch(options.environment());
                            worker.run("cuCtxSetCurrent", device::makeCurrent);
                            return root ? uniqueId(library, worker, id) : "";
                        });
        id.copyFrom(MemorySegment.ofArray(HexFormat.of().parseHex(ids.get(peMap.rootRank()))));
        try {
            meeting.step(
                    () ->
                            worker.run(
                                    "nvshmemx_hostlib_init_attr",
                                    () -> init(library, device, id, attr)));
        } catch (RuntimeException e) {
            // NVSHMEM is half started here or at a peer, where taking it down could wait for ever.
            process.fail(e.getMessage());
            throw e;
        }
        LOG.log(
                System.Logger.Level.DEBUG,
                "NVSHMEM {0} runs on {1}: PE {2} of {3}, {4}",
                library.version(),
                device,
                peMap.pe(),
                peMap.numPes(),
                options);
    }

    private static String uniqueId(NvshmemLibrary library, NvshmemWorker worker, MemorySegment id) {
        worker.run(
                "nvshmemx_get_uniqueid",
                () -> {
                    int status = library.getUniqueId(id);
                    if (status != NvshmemLibrary.SUCCESS) {
                        throw new DeepEpUnavailableException(
                                "nvshmemx_get_uniqueid: %s (%s)"
                                        .formatted(NvshmemLibrary.name(status), status),
                                "name a network interface that is up: bootstrapInterface=eth0, or lo on one host");
                    }
                });
        return HexFormat.of().formatHex(id.toArray(JAVA_BYTE));
    }

    private void init(
            NvshmemLibrary library, NvshmemDevice device, MemorySegment id, MemorySegment attr) {
        String where = device.toString();
        int reached = library.init(peMap.pe(), peMap.numPes(), id, attr, where);
        if (reached < NvshmemLibrary.STATUS_INITIALIZED) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM did not start on %s: init_status=%s is below %s"
                            .formatted(where, reached, NvshmemLibrary.STATUS_INITIALIZED),
                    "set NVSHMEM_DEBUG=WARN to see why, and check the machine with deepep doctor");
        }
        checkTransport(where);
    }

    /** Where GPUs reach each other over NVLink, NVSHMEM starts without its transport too. */
    private void checkTransport(String where) {
        boolean started = transport().map(NvshmemPlugin::isLoaded).orElse(true);
        if (!started) {
            throw new DeepEpUnavailableException(
                    "transport %s was asked for, but NVSHMEM could not start it on %s"
                            .formatted(options.transport(), where),
                    "set NVSHMEM_DEBUG=INFO to see why; if all GPUs reach each other over NVLink, use"
                            + " transport NONE");
        }
    }
}
