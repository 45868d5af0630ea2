package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.error.DeepEpUnavailableException;

/** Direct loads and stores between the GPUs of one process, over NVLink or PCIe. */
public final class PeerAccess {
    private static final CuCall CAN_ACCESS =
            CuCall.of("cuDeviceCanAccessPeer", ADDRESS, JAVA_INT, JAVA_INT);
    private static final CuCall ENABLE =
            CuCall.of("cuCtxEnablePeerAccess", JAVA_LONG, JAVA_INT)
                    .tolerating(CuError.PEER_ACCESS_ALREADY_ENABLED);

    private PeerAccess() {}

    /**
     * Whether kernels of {@code from} can reach plain allocations of {@code to}; true for one and
     * the same GPU.
     */
    public static boolean isPossible(CudaDevice from, CudaDevice to) {
        return from.ordinal() == to.ordinal() || CAN_ACCESS.ask(from.ordinal(), to.ordinal()) != 0;
    }

    /**
     * Lets kernels of {@code from} reach all plain allocations of {@code to}, those to come
     * included. One direction; stays on while the context lives. Nothing happens if it is on
     * already, or for one and the same GPU.
     *
     * @throws DeepEpUnavailableException if the two GPUs cannot reach each other
     */
    public static void enable(CudaContext from, CudaContext to) {
        if (from.cudaDevice().ordinal() == to.cudaDevice().ordinal()) {
            return;
        }
        if (!isPossible(from.cudaDevice(), to.cudaDevice())) {
            throw new DeepEpUnavailableException(
                    from.device() + " cannot access the memory of " + to.device(),
                    "use GPUs that nvidia-smi topo -p2p rw shows as OK to each other");
        }
        from.makeCurrent();
        ENABLE.call(to.handle(), 0);
    }
}
