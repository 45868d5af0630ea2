package io.deepep.doctor;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.ibgda.IbgdaTrial;
import io.deepep.cuda.rdma.Gid;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.cuda.rdma.RdmaFacts;
import io.deepep.cuda.rdma.RdmaPort;
import io.deepep.error.DeepEpException;
import java.util.List;
import java.util.stream.IntStream;

/** Reads the facts about network cards. */
public final class NicProbe {
    private NicProbe() {}

    /**
     * Reads what the cards report that this process may open, in the order of libibverbs; none
     * without libibverbs. Never throws.
     *
     * @param tryGpu whether to try them with the first GPU, which takes memory there
     */
    public static List<NicFacts> read(boolean tryGpu) {
        if (RdmaDevice.unavailabilityReason().isPresent()) {
            return List.of();
        }
        try {
            return RdmaDevice.names().stream().map(name -> ask(name, tryGpu)).toList();
        } catch (DeepEpException e) {
            return List.of(NicFacts.unknown("libibverbs", e.getMessage()));
        }
    }

    private static NicFacts ask(String name, boolean tryGpu) {
        try (RdmaDevice device = RdmaDevice.open(name)) {
            RdmaFacts facts = device.facts();
            return new NicFacts(
                    name,
                    "",
                    facts.firmware(),
                    facts.maxQueuePairs(),
                    facts.maxEntries(),
                    facts.relaxedOrdering(),
                    facts.missing(),
                    IntStream.rangeClosed(1, facts.numPorts())
                            .mapToObj(number -> port(device.port(number)))
                            .toList(),
                    attempt(device, tryGpu));
        } catch (DeepEpException e) {
            return NicFacts.unknown(name, e.getMessage());
        }
    }

    private static NicFacts.Port port(RdmaPort port) {
        return new NicFacts.Port(
                port.name(),
                port.active(),
                port.mtuBytes(),
                port.gids().stream().filter(gid -> !gid.isEmpty()).map(Gid::toString).toList());
    }

    private static NicFacts.Trial attempt(RdmaDevice device, boolean tryGpu) {
        if (!tryGpu) {
            return NicFacts.Trial.none("not asked for");
        }
        if (!device.facts().missing().isEmpty()) {
            return NicFacts.Trial.none("kernels cannot drive this card");
        }
        try {
            CudaContext context = CudaContext.shared(CudaDevice.of(0));
            IbgdaTrial trial = IbgdaTrial.of(context, device);
            return new NicFacts.Trial(
                    context.device().toString(),
                    "",
                    trial.dmaBuf(),
                    trial.peerMem(),
                    trial.queues(),
                    trial.doorbells());
        } catch (DeepEpException e) {
            return NicFacts.Trial.none(e.getMessage());
        }
    }
}
