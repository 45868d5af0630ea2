package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;

/**
 * What one rank's thread of a test has at hand.
 *
 * @param backend under test
 * @param topology of the group, with this rank in it
 * @param communicator of the rank
 * @param buffer open, closed by the test's frame
 * @param common what the ranks of this process share
 */
public record RankContext(
        TestBackend backend,
        EpTopology topology,
        Communicator communicator,
        Buffer buffer,
        ConcurrentMap<Object, Object> common) {
    public RankContext(TestBackend backend, Communicator communicator, Buffer buffer) {
        this(backend, buffer.topology(), communicator, buffer, new ConcurrentHashMap<>());
    }

    /** Stands for the ranks of a group that is still to be made. */
    static RankContext of(TestBackend backend, EpTopology topology) {
        return new RankContext(backend, topology, null, null, null);
    }

    public int rank() {
        return communicator.rank();
    }

    /** Whether this is the rank that errs, in cases of bad input. */
    public boolean isCulprit() {
        return rank() == Misbehaviour.CULPRIT;
    }

    /** What the first rank of this process that asks for it makes, for all of them. */
    @SuppressWarnings("unchecked") // a key belongs to one kind of values
    public <K, V> V shared(K key, Function<K, V> make) {
        return (V) common.computeIfAbsent(key, _ -> make.apply(key));
    }

    public Device device() {
        return backend.device(rank(), communicator.size());
    }

    /** Masks these ranks, and requires that no others are. */
    public void mask(Set<Integer> ranks) {
        ranks.forEach(rank -> buffer.updateMask(rank, true));
        requireMasked(ranks);
    }

    /** Requires that these ranks are masked and no others. */
    public void requireMasked(Set<Integer> ranks) {
        int[] expected = new int[topology.numRanks()];
        ranks.forEach(rank -> expected[rank] = 1);
        assertThat(buffer.queryMask()).containsExactly(expected);
    }

    /** Waits for all ranks of the group. */
    public void meet() {
        communicator.barrier(Ranks.TIMEOUT);
    }

    /** Whether it is true of all ranks of the group: all ask. */
    public boolean everywhere(boolean here, Duration patience) {
        byte[] answer = {(byte) (here ? 1 : 0)};
        return communicator.allGather(answer, patience).stream().allMatch(each -> each[0] == 1);
    }

    public Tensor upload(Tensor hostTensor) {
        return hostTensor == null ? null : backend.upload(device(), hostTensor);
    }

    public Tensor download(Tensor deviceTensor) {
        return backend.download(deviceTensor);
    }

    /** Writes one device tensor over another. */
    public void copy(Tensor from, Tensor to) {
        backend.write(download(from), to);
    }

    /** A device tensor full of NaNs, for results. */
    public Tensor poisoned(DType dtype, long... shape) {
        return upload(HostTensors.poison(HostTensors.allocate(dtype, shape)));
    }

    /** The same whose rows are {@code gap} elements apart. */
    public Tensor poisonedWithRowGap(long gap, DType dtype, long... shape) {
        Tensor host = HostTensors.poison(HostTensors.allocate(dtype, shape));
        return upload(HostTensors.withRowGap(host, gap));
    }

    /** A copy of indices, or the like, of which the rank that errs has set an element. */
    public Tensor spoiled(Tensor tensor, long value, long... at) {
        Tensor copy = download(tensor);
        if (isCulprit()) {
            copy.setLong(value, at);
        }
        return upload(copy);
    }

    /** Opens another buffer of these ranks. */
    public Buffer.Builder builder(RankGroup group) {
        Buffer.Builder builder = Ranks.builder(backend, communicator, topology);
        group.limit(builder);
        return builder;
    }

    /** The same rank with another buffer. */
    public RankContext with(Buffer other) {
        return new RankContext(backend, topology, communicator, other, common);
    }

    /** The group, for names of cases. */
    @Override
    public String toString() {
        return topology == null ? "" : topology.numRdmaRanks() + "x" + topology.numNvlRanks();
    }
}
