package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.Tensor;
import io.deepep.buffer.memory.NetworkChoice;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.normal.cuda.CudaNormalKernels;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.TestStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The CUDA backend in tests. Ranks share the GPUs there are; all of them copy on one stream per GPU
 * that is made before any kernel waits, because making streams can wait for all kernels.
 */
final class CudaTestBackend implements TestBackend {
    private static final long RESERVED_BYTES = 256L << 20;
    private static final ConcurrentHashMap<Integer, Lane> LANES = new ConcurrentHashMap<>();

    private final String name;
    private final boolean internode;
    private final Network network;

    /**
     * A backend for groups of one size.
     *
     * @param internode whether they have several nodes
     */
    CudaTestBackend(String name, boolean internode, Network network) {
        this.name = name;
        this.internode = internode;
        this.network = network;
    }

    /** A stream and memory on one GPU. */
    private record Lane(CudaStream stream, DevicePool pool) {
        static Lane of(Device device) {
            return LANES.computeIfAbsent(
                    device.index(),
                    index -> {
                        CudaStream stream =
                                CudaStream.create(CudaContext.shared(CudaDevice.of(index)));
                        return new Lane(stream, new DevicePool(stream, RESERVED_BYTES));
                    });
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String toString() {
        return name;
    }

    @Override
    public Device.Kind kind() {
        return Device.Kind.CUDA;
    }

    @Override
    public Device device(int rank, int numRanks) {
        Device device = Device.cuda(rank % CudaDriver.numDevices());
        Lane.of(device);
        return device;
    }

    @Override
    public Optional<String> unavailabilityReason() {
        return CudaDriver.unavailabilityReason()
                .or(() -> haveNetwork() ? Optional.empty() : Optional.of(NvshmemInstallation.CURE))
                .or(this::missingCards);
    }

    private Optional<String> missingCards() {
        if (!(network instanceof Network.Ibgda)) {
            return Optional.empty();
        }
        // Until all suites have run on it.
        if (!System.getProperty(TestBackends.SELECT, "").contains(name)) {
            return Optional.of("it runs only where -D" + TestBackends.SELECT + " names it");
        }
        return RdmaDevice.unavailabilityReason()
                .or(
                        () ->
                                RdmaDevice.names().isEmpty()
                                        ? Optional.of("libibverbs lists no device")
                                        : Optional.empty());
    }

    private boolean haveNetwork() {
        return !needsProcessPerRank()
                || (NvshmemInstallation.find().isPresent()
                        && CudaNormalKernels.haveNetworkKernels());
    }

    /** NVSHMEM is initialised once in a process. */
    @Override
    public boolean needsProcessPerRank() {
        return !NetworkChoice.allowsThreads(network);
    }

    @Override
    public Network network() {
        return network;
    }

    @Override
    public Network networkWithMasks() {
        return switch (network) {
            case Network.Ibgda ibgda -> ibgda.withMasks(true);
            case Network.Nvshmem nvshmem -> nvshmem.withMasks(true);
            case Network.Auto auto -> auto;
            case Network.PeerMemory memory -> memory;
        };
    }

    @Override
    public boolean outlivesRanks() {
        return NetworkChoice.outlivesRanks(network);
    }

    @Override
    public boolean supports(EpTopology topology) {
        return topology.isInternode() == internode;
    }

    /**
     * All blocks of a GPU's ranks are there at once: one of each, or two in normal mode across
     * nodes.
     */
    @Override
    public int mostRanks(EpTopology topology, boolean lowLatency) {
        int numSms = CudaDevice.of(0).numSms();
        boolean needsTwo = topology.isInternode() && !lowLatency;
        return CudaDriver.numDevices() * (needsTwo ? numSms / 2 : numSms);
    }

    @Override
    public TestStream newStream(Device device) {
        return new CudaTestStream(device);
    }

    @Override
    public boolean hasGraphs() {
        return true;
    }

    @Override
    public Tensor upload(Device device, Tensor hostTensor) {
        if (hostTensor.numElements() == 0) {
            return nowhere(device, hostTensor);
        }
        Lane lane = Lane.of(device);
        long bytes = hostTensor.segment().byteSize();
        DevicePool.Block block = lane.pool().allocate(bytes);
        lane.stream().copy(block.address(), hostTensor.address(), bytes);
        lane.stream().synchronize();
        return Tensor.onDevice(
                device,
                block.address(),
                block.numBytes(),
                hostTensor.dtype(),
                hostTensor.shape(),
                hostTensor.strides(),
                block);
    }

    /** Without elements, at address 0, as engines have such tensors. */
    private static Tensor nowhere(Device device, Tensor empty) {
        return Tensor.onDevice(device, 0, 0, empty.dtype(), empty.shape(), empty.strides());
    }

    @Override
    public Tensor download(Tensor deviceTensor) {
        if (deviceTensor.device().isHost()) {
            return HostTensors.copyOf(deviceTensor);
        }
        return HostTensors.copyOf(image(deviceTensor));
    }

    /** The tensor's memory, gaps included, on the host. */
    private static Tensor image(Tensor deviceTensor) {
        long bytes = deviceTensor.extentBytes();
        MemorySegment memory = Arena.ofAuto().allocate(Math.max(bytes, 1), 128);
        Lane lane = Lane.of(deviceTensor.device());
        if (bytes > 0) {
            lane.stream().copy(memory.address(), deviceTensor.address(), bytes);
            lane.stream().synchronize();
        }
        return Tensor.strided(
                memory, deviceTensor.dtype(), deviceTensor.shape(), deviceTensor.strides());
    }

    @Override
    public void write(Tensor hostTensor, Tensor deviceTensor) {
        Tensor image = image(deviceTensor);
        HostTensors.copy(hostTensor, image);
        Lane lane = Lane.of(deviceTensor.device());
        long bytes = deviceTensor.extentBytes();
        if (bytes > 0) {
            lane.stream().copy(deviceTensor.address(), image.address(), bytes);
            lane.stream().synchronize();
        }
    }
}
