package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.DmaBuf;
import io.deepep.cuda.memory.MappedRegister;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.cuda.rdma.DoorbellRegister;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.error.DeepEpException;
import java.util.List;

/**
 * What a start does with a GPU and a card, tried with little memory, which is given back. Each
 * component is empty if that works, else why it does not.
 *
 * @param dmaBuf the card reaches memory of the GPU by a dma-buf
 * @param peerMem the same through the module nvidia-peermem
 * @param queues queues lie in memory of the GPU
 * @param doorbells the card's registers are mapped for the GPU
 */
public record IbgdaTrial(String dmaBuf, String peerMem, String queues, String doorbells) {
    private static final long BYTES = 64 << 10;

    /** Tries. */
    public static IbgdaTrial of(CudaContext context, RdmaDevice device) {
        return new IbgdaTrial(
                DmaBuf.isSupported(context)
                        ? attempt(() -> tryDmaBuf(context, device))
                        : "the GPU's driver makes none",
                attempt(
                        () ->
                                onMemory(
                                        context,
                                        address -> device.register(address, BYTES, true).close())),
                attempt(() -> tryQueues(context, device)),
                attempt(() -> tryDoorbells(context, device)));
    }

    private static void tryDmaBuf(CudaContext context, RdmaDevice device) {
        onMemory(
                context,
                address ->
                        GpuReach.byDmaBuf(
                                        context,
                                        address,
                                        BYTES,
                                        descriptor ->
                                                device.registerDmaBuf(
                                                        address, BYTES, descriptor, true))
                                .close());
    }

    private static void tryQueues(CudaContext context, RdmaDevice device) {
        QueueSlab.register(context, 1, IbgdaOptions.Group.MIN_BLOCKS, true, List.of(device))
                .close();
    }

    private static void tryDoorbells(CudaContext context, RdmaDevice device) {
        try (DoorbellRegister register = DoorbellRegister.allocate(device)) {
            MappedRegister.of(context, register.address(), register.numBytes()).close();
        }
    }

    private interface OnMemory {
        void run(long address);
    }

    private static void onMemory(CudaContext context, OnMemory task) {
        try (VirtualMemory memory =
                VirtualMemory.allocate(context, BYTES, VirtualMemory.Export.NONE)) {
            task.run(memory.address());
        }
    }

    private static String attempt(Runnable step) {
        try {
            step.run();
            return "";
        } catch (DeepEpException failed) {
            return failed.getMessage();
        }
    }
}
