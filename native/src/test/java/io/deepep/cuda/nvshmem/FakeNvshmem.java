package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.Network.NicHandler;
import io.deepep.Network.Quality;
import io.deepep.cuda.driver.FakeLibraries;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** An installation of fake_nvshmem.c, as if in a process of its own. */
final class FakeNvshmem {
    private static final AtomicInteger NUM_INSTALLATIONS = new AtomicInteger();

    final FakeDevice device = new FakeDevice();
    NvshmemUserSettings user = NvshmemUserSettings.NONE;
    private final NvshmemProcess process = new NvshmemProcess();
    private final Path sysfs;
    private final NvshmemInstallation installation;
    private final SymbolLookup symbols;

    /** Installs a compiled library beside it, and plugins that can be loaded and do nothing. */
    FakeNvshmem(Path compiled) {
        Path home = compiled.resolveSibling("home" + NUM_INSTALLATIONS.getAndIncrement());
        sysfs = home.resolve("sys");
        Path lib = home.resolve("lib");
        FakeLibraries.copy(compiled, lib.resolve(NvshmemInstallation.LIBRARY));
        for (String plugin : List.of("bootstrap_uid", "transport_ibrc", "transport_ibgda")) {
            FakeLibraries.copy(compiled, lib.resolve("nvshmem_" + plugin + ".so.3"));
        }
        installation = NvshmemInstallation.in(home, "test");
        symbols = SymbolLookup.libraryLookup(installation.library(), Arena.global());
    }

    /** Options that leave everything else to NVSHMEM. */
    static NvshmemOptions options(NvshmemTransport transport) {
        return options(transport, "");
    }

    static NvshmemOptions options(NvshmemTransport transport, String bootstrapInterface) {
        return NvshmemOptions.of(
                transport, NicHandler.AUTO, Quality.DEFAULT, true, bootstrapInterface);
    }

    NvshmemInstallation installation() {
        return installation;
    }

    /** Starts it as the process's NVSHMEM. */
    Nvshmem start(NvshmemOptions options, PeMap map, Communicator communicator, Duration timeout) {
        return new NvshmemStartup(process, installation, options, map, user, sysfs)
                .start(device, communicator, timeout);
    }

    /** Gives the host RDMA devices. */
    void addHcas(int count) throws IOException {
        for (int i = 0; i < count; i++) {
            Files.createDirectories(sysfs.resolve("class/infiniband/mlx5_" + i));
        }
    }

    /** Sets how calls go wrong; see the source. */
    void set(String variable, int value) {
        symbols.find(variable).orElseThrow().reinterpret(4).set(ValueLayout.JAVA_INT, 0, value);
    }

    void setMinorVersion(int minor) {
        symbols.find("fake_version")
                .orElseThrow()
                .reinterpret(12)
                .set(ValueLayout.JAVA_INT, 4, minor);
    }

    /** What was called, in order. */
    List<String> calls() {
        return text("fake_calls").lines().toList();
    }

    /** What would have ended the process. */
    String fatal() {
        return text("fake_fatal");
    }

    private String text(String function) {
        try {
            MemorySegment text =
                    (MemorySegment)
                            Linker.nativeLinker()
                                    .downcallHandle(
                                            symbols.find(function).orElseThrow(),
                                            FunctionDescriptor.of(ValueLayout.ADDRESS))
                                    .invokeExact();
            return text.reinterpret(1 << 16).getString(0);
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }
}
