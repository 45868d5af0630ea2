package io.deepep.doctor;

import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.NvLinks;
import io.deepep.cuda.NvlinkDomain;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;

/** Reads the facts about GPUs from the driver. */
public final class GpuProbe {
    private static final int ATTRIBUTE_GPU_DIRECT_RDMA = 116;

    private GpuProbe() {}

    /**
     * Reads what the driver reports; never throws.
     *
     * @param measure whether to measure copies between GPUs, which takes memory and a second or two
     */
    public static GpuFacts read(boolean measure) {
        try {
            return ask(CudaDriver.devices(), measure);
        } catch (DeepEpUnavailableException e) {
            return GpuFacts.unavailable(e.reason(), e.cure());
        } catch (DeepEpException e) {
            return GpuFacts.unavailable(e.getMessage(), "check nvidia-smi and dmesg | grep NVRM");
        }
    }

    private static GpuFacts ask(List<CudaDevice> devices, boolean measure) {
        List<List<Boolean>> peerAccess =
                devices.stream()
                        .map(a -> devices.stream().map(b -> PeerAccess.isPossible(a, b)).toList())
                        .toList();
        List<List<Double>> speeds = List.of();
        String speedProblem = "";
        try {
            if (measure && devices.size() > 1) {
                speeds = PeerBandwidth.measure(devices);
            }
        } catch (DeepEpException e) {
            speedProblem = e.getMessage();
        }
        List<GpuFacts.Gpu> gpus = devices.stream().map(GpuProbe::gpu).toList();
        List<PciAddress> addresses = gpus.stream().map(GpuFacts.Gpu::address).toList();
        return new GpuFacts(
                "",
                "",
                CudaDriver.versionName(CudaDriver.version()),
                gpus,
                peerAccess,
                NvLinks.between(addresses).orElse(List.of()),
                speeds,
                speedProblem);
    }

    private static GpuFacts.Gpu gpu(CudaDevice device) {
        PciAddress address = PciAddress.parse(device.pciBusId());
        return new GpuFacts.Gpu(
                device.ordinal(),
                device.name(),
                address.toString(),
                device.computeMajor(),
                device.computeMinor(),
                device.numSms(),
                device.memoryBytes(),
                device.attribute(ATTRIBUTE_GPU_DIRECT_RDMA) != 0,
                device.supportsDmaBuf(),
                NvlinkDomain.of(address).map(NvlinkDomain::toString).orElse(""));
    }
}
