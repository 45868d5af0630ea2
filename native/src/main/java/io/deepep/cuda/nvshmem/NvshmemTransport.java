package io.deepep.cuda.nvshmem;

import java.util.Optional;

/** What carries data to PEs that cannot be reached over NVLink. */
public enum NvshmemTransport {
    /** Nothing: all PEs reach each other's memory. */
    NONE("none", null, ""),
    /** Verbs; the CPU drives the NIC for the GPU. */
    IBRC("ibrc", "nvshmem_transport_ibrc.so.3", NvshmemTransport.VERBS),
    /** UCX; the CPU drives it. */
    UCX("ucx", "nvshmem_transport_ucx.so.3", "libucx0"),
    /** libfabric; the CPU drives it. */
    LIBFABRIC("libfabric", "nvshmem_transport_libfabric.so.3", "libfabric1"),
    /** mlx5's own interface; the CPU drives the NIC. */
    IBDEVX("ibdevx", "nvshmem_transport_ibdevx.so.3", NvshmemTransport.VERBS),
    /**
     * The GPU drives the NIC. NVSHMEM would have a second transport beside it and silently fall
     * back to that one; ours is none, so that IBGDA works or the start fails.
     */
    IBGDA("none", "nvshmem_transport_ibgda.so.3", NvshmemTransport.VERBS);

    /**
     * RDMA devices that a host may have if they are {@linkplain #usesHcaList listed}: the size of a
     * table, past whose end more would be written.
     */
    public static final int MAX_DEVICES = 48;

    /** What to do where there are more. */
    public static final String TOO_MANY_DEVICES_CURE =
            "remove virtual functions: echo 0 | sudo tee /sys/class/infiniband/mlx5_0/device/sriov_numvfs";

    private static final String VERBS = "libibverbs1 ibverbs-providers";

    private final String remoteTransport;
    private final String plugin;
    private final String packages;

    NvshmemTransport(String remoteTransport, String plugin, String packages) {
        this.remoteTransport = remoteTransport;
        this.plugin = plugin;
        this.packages = packages;
    }

    /** The value of {@code NVSHMEM_REMOTE_TRANSPORT}. */
    String remoteTransport() {
        return remoteTransport;
    }

    /** The file beside the host library that implements it. */
    public Optional<String> plugin() {
        return Optional.ofNullable(plugin);
    }

    /** System packages with the libraries that the plugin needs. */
    public String packages() {
        return packages;
    }

    /** Whether NICs are taken from a list of RDMA devices. */
    public boolean usesHcaList() {
        return this == IBRC || this == IBDEVX || this == IBGDA;
    }
}
