package io.deepep.cuda.rdma;

import io.deepep.Network;
import io.deepep.error.DeepEpUnavailableException;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.function.IntFunction;

/**
 * A port as its peers address it.
 *
 * @param ethernet whether it is RoCE
 * @param lid local id on InfiniBand
 * @param mtu as InfiniBand numbers it
 * @param gid its address, and where it is in its own table
 * @param isVersion2 of RoCE
 */
public record Endpoint(boolean ethernet, int lid, int mtu, Gid gid, boolean isVersion2) {
    /**
     * What a rank tells its peers of a port.
     *
     * @param gidIndex its address there; {@link Network.Quality#FIND_GID} to look for it
     * @param typeOf what the kernel says of the address at an index
     * @throws DeepEpUnavailableException if the port is down, or has no such address
     */
    public static Endpoint of(RdmaPort port, int gidIndex, IntFunction<String> typeOf) {
        port.requireActive();
        Gid gid = gidIndex == Network.Quality.FIND_GID ? port.choose(typeOf) : port.gid(gidIndex);
        if (gid == null) {
            String where = gidIndex < 0 ? "" : " at gidIndex=" + gidIndex;
            throw new DeepEpUnavailableException(
                    "port %s has no address%s; it has %s"
                            .formatted(port.name(), where, port.gids()),
                    "give its network interface an address, or another gidIndex");
        }
        return new Endpoint(
                port.ethernet(),
                port.lid(),
                port.mtu(),
                gid,
                typeOf.apply(gid.idx()).contains("v2"));
    }

    /** Writes it for peers. */
    public void write(DataOutputStream out) throws IOException {
        out.writeBoolean(ethernet);
        out.writeShort(lid);
        out.writeByte(mtu);
        out.writeInt(gid.idx());
        out.writeLong(gid.high());
        out.writeLong(gid.low());
        out.writeBoolean(isVersion2);
    }

    /** Reads what {@link #write} wrote. */
    public static Endpoint read(DataInputStream in) throws IOException {
        return new Endpoint(
                in.readBoolean(),
                in.readUnsignedShort(),
                in.readByte(),
                new Gid(in.readInt(), in.readLong(), in.readLong()),
                in.readBoolean());
    }
}
