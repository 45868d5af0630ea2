package io.deepep.cuda.nvshmem;

import io.deepep.Network.NicHandler;
import io.deepep.Network.Quality;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * How NVSHMEM is started. Ranks use the same values, except for the NICs.
 *
 * @param transport to PEs of other nodes
 * @param numQpsPerPe queue pairs to every PE, at least 1; more where kernels use more channels, or
 *     a bond has several links
 * @param qpDepth entries of a queue, a power of two from 128 to 32768; at least twice what a kernel
 *     posts before it waits
 * @param hcas ports of this rank's NICs, as {@code mlx5_0:1}; empty leaves the choice to NVSHMEM
 * @param nicHandler who rings the NIC's doorbells; IBGDA only
 * @param quality which address of a RoCE port, where NVSHMEM finds the IPv4-mapped RoCE v2 one
 *     itself; traffic class of RoCE, service level of InfiniBand or RoCE
 * @param usePeerAccess whether PEs of one node reach each other over NVLink
 * @param bootstrapInterface network interface over which processes meet, as {@code eth0}; empty
 *     takes the first one that is not the loopback
 */
public record NvshmemOptions(
        NvshmemTransport transport,
        int numQpsPerPe,
        int qpDepth,
        List<String> hcas,
        NicHandler nicHandler,
        Quality quality,
        boolean usePeerAccess,
        String bootstrapInterface) {
    /** Those that NVSHMEM makes for itself, and that of a rail, by which PEs compare numbers. */
    private static final int NUM_TEAMS = 6 + 1;

    private static final int MIN_QP_DEPTH = 128;
    private static final int MAX_QP_DEPTH = 32768;
    private static final int MAX_HCAS = 32;
    private static final String SUPPORTED_PREFIX = "mlx5";

    public NvshmemOptions {
        hcas = List.copyOf(hcas);
        if (numQpsPerPe < 1) {
            throw new IllegalArgumentException("numQpsPerPe=" + numQpsPerPe + " is not positive");
        }
        if (qpDepth < MIN_QP_DEPTH || qpDepth > MAX_QP_DEPTH || Integer.bitCount(qpDepth) != 1) {
            throw new IllegalArgumentException(
                    "qpDepth=%s is not a power of two in [%s, %s]"
                            .formatted(qpDepth, MIN_QP_DEPTH, MAX_QP_DEPTH));
        }
        for (String hca : hcas) {
            if (!hca.matches("[\\w.-]+:\\d{1,3}")) {
                throw new IllegalArgumentException(
                        "hcas has \"" + hca + "\", which is not HCA:PORT such as mlx5_0:1");
            }
        }
        if (hcas.size() > MAX_HCAS) {
            throw new IllegalArgumentException(
                    "hcas has " + hcas.size() + " ports, but at most " + MAX_HCAS + " are allowed");
        }
        checkRange("trafficClass", quality.trafficClass(), 255);
        checkRange("serviceLevel", quality.serviceLevel(), 15);
        if (quality.gidIndex() != Quality.FIND_GID) {
            checkRange("gidIndex", quality.gidIndex(), 255);
        }
        if (!usePeerAccess && transport == NvshmemTransport.NONE) {
            throw new IllegalArgumentException(
                    "transport=NONE reaches no other GPU without peer access; choose another transport");
        }
        if (!hcas.isEmpty() && transport.usesHcaList() && hcaPrefix(hcas).isEmpty()) {
            throw new IllegalArgumentException(
                    "hcas=%s have no common prefix, which NVSHMEM needs; rename the devices or use only one"
                            .formatted(hcas));
        }
    }

    /** With one queue pair of 1024 entries to every PE, on NICs that NVSHMEM chooses. */
    public static NvshmemOptions of(
            NvshmemTransport transport,
            NicHandler nicHandler,
            Quality quality,
            boolean usePeerAccess,
            String bootstrapInterface) {
        return new NvshmemOptions(
                transport,
                1,
                1024,
                List.of(),
                nicHandler,
                quality,
                usePeerAccess,
                bootstrapInterface);
    }

    /** The same with other queues, on these ports of this rank's NICs. */
    public NvshmemOptions withQueues(int newNumQpsPerPe, int newQpDepth, List<String> newHcas) {
        return new NvshmemOptions(
                transport,
                newNumQpsPerPe,
                newQpDepth,
                newHcas,
                nicHandler,
                quality,
                usePeerAccess,
                bootstrapInterface);
    }

    private static void checkRange(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + "=" + value + " is not in [0, " + max + "]");
        }
    }

    /** Whether a start with these options has what one with {@code wanted} would have. */
    boolean serves(NvshmemOptions wanted) {
        return numQpsPerPe >= wanted.numQpsPerPe
                && qpDepth >= wanted.qpDepth
                && equals(wanted.withQueues(numQpsPerPe, qpDepth, wanted.hcas));
    }

    /** The environment that says all this to NVSHMEM, sorted by name. */
    Map<String, String> environment() {
        Map<String, String> variables = new TreeMap<>();
        variables.put("NVSHMEM_REMOTE_TRANSPORT", transport.remoteTransport());
        boolean ibgda = transport == NvshmemTransport.IBGDA;
        variables.put("NVSHMEM_IB_ENABLE_IBGDA", flag(ibgda));
        variables.put("NVSHMEM_DISABLE_P2P", flag(!usePeerAccess));
        // NVLink multicast can take GPUs that a host shares out of service.
        variables.put("NVSHMEM_DISABLE_NVLS", "1");
        variables.put("NVSHMEM_MAX_TEAMS", Integer.toString(NUM_TEAMS));
        if (!bootstrapInterface.isEmpty()) {
            variables.put("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", bootstrapInterface);
        }
        if (transport.usesHcaList()) {
            putQueues(variables, ibgda);
            putNics(variables);
        } else if (transport == NvshmemTransport.UCX && !hcas.isEmpty()) {
            variables.put("UCX_NET_DEVICES", String.join(",", hcas));
        } else if (transport == NvshmemTransport.LIBFABRIC) {
            variables.put("NVSHMEM_LIBFABRIC_PROVIDER", "verbs");
        }
        return variables;
    }

    private void putQueues(Map<String, String> variables, boolean ibgda) {
        String numQps = Integer.toString(numQpsPerPe);
        variables.put("NVSHMEM_QP_DEPTH", Integer.toString(qpDepth));
        if (ibgda) {
            variables.put("NVSHMEM_IBGDA_NUM_RC_PER_PE", numQps);
            variables.put("NVSHMEM_IBGDA_NIC_HANDLER", nicHandler.name().toLowerCase(Locale.ROOT));
        }
        keepOrder(variables);
        if (quality.gidIndex() != Quality.FIND_GID) {
            variables.put("NVSHMEM_IB_GID_INDEX", Integer.toString(quality.gidIndex()));
        }
        variables.put("NVSHMEM_IB_TRAFFIC_CLASS", Integer.toString(quality.trafficClass()));
        variables.put("NVSHMEM_IB_SL", Integer.toString(quality.serviceLevel()));
    }

    /**
     * A flag vouches for what its block has put before, so both must take one queue; see
     * docs/networks.md.
     */
    private void keepOrder(Map<String, String> variables) {
        if (transport == NvshmemTransport.IBGDA) {
            // With several ports a block's puts would go round them.
            variables.put("NVSHMEM_IBGDA_RC_MAP_BY", "cta");
            variables.put("NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "0");
            return;
        }
        // The proxy goes round its queues. Its fence waits for all of them under IBRC, and for the
        // first alone under IBDEVX.
        variables.put("NVSHMEM_IB_NUM_RC_PER_DEVICE", "1");
        if (transport == NvshmemTransport.IBRC) {
            // IBRC's signals are writes, which may overtake data in memory registered so. Those of
            // the others are atomics, which may not.
            variables.put("NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "0");
        }
    }

    private void putNics(Map<String, String> variables) {
        // Otherwise the number of a PE in its host decides, which is 0 everywhere in normal mode.
        variables.put("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0");
        if (hcas.isEmpty()) {
            return;
        }
        variables.put("NVSHMEM_HCA_LIST", String.join(",", hcas));
        if (!hcaPrefix(hcas).contains(SUPPORTED_PREFIX)) {
            variables.put("NVSHMEM_HCA_PREFIX", hcaPrefix(hcas));
        }
    }

    private static String flag(boolean value) {
        return value ? "1" : "0";
    }

    /**
     * How the devices' names begin. NVSHMEM skips devices without mlx5 in their names, as those
     * that udev has renamed to ibp24s0, unless told another beginning.
     */
    private static String hcaPrefix(List<String> hcas) {
        String prefix = hcas.getFirst().substring(0, hcas.getFirst().indexOf(':'));
        for (String hca : hcas) {
            while (!hca.startsWith(prefix)) {
                prefix = prefix.substring(0, prefix.length() - 1);
            }
        }
        return prefix;
    }
}
