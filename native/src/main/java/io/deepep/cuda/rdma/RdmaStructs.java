package io.deepep.cuda.rdma;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Where the fields are that are used of the structures of {@code infiniband/verbs.h} and {@code
 * infiniband/mlx5dv.h}. A test compares them with the headers.
 */
final class RdmaStructs {
    static final long DEVICE_ATTR_BYTES = 232;
    static final Field DEVICE_FIRMWARE = new Field("ibv_device_attr", "fw_ver", 0, 64);
    static final Field DEVICE_MAX_MR_BYTES = new Field("ibv_device_attr", "max_mr_size", 80, 8);
    static final Field DEVICE_MAX_QP = new Field("ibv_device_attr", "max_qp", 108, 4);
    static final Field DEVICE_MAX_QP_WR = new Field("ibv_device_attr", "max_qp_wr", 112, 4);
    static final Field DEVICE_MAX_ATOMICS = new Field("ibv_device_attr", "max_qp_rd_atom", 144, 4);
    static final Field DEVICE_MAX_ATOMICS_SENT =
            new Field("ibv_device_attr", "max_qp_init_rd_atom", 156, 4);
    static final Field DEVICE_PORTS = new Field("ibv_device_attr", "phys_port_cnt", 227, 1);

    /** What ibv_query_port fills: headers since have a longer struct, for another function. */
    static final long PORT_ATTR_BYTES = 52;

    static final Field PORT_STATE = new Field("ibv_port_attr", "state", 0, 4);
    static final Field PORT_MTU = new Field("ibv_port_attr", "active_mtu", 8, 4);
    static final Field PORT_GIDS = new Field("ibv_port_attr", "gid_tbl_len", 12, 4);
    static final Field PORT_MAX_MESSAGE = new Field("ibv_port_attr", "max_msg_sz", 20, 4);
    static final Field PORT_LID = new Field("ibv_port_attr", "lid", 34, 2);
    static final Field PORT_LINK_LAYER = new Field("ibv_port_attr", "link_layer", 46, 1);
    static final Field PORT_FLAGS = new Field("ibv_port_attr", "flags", 47, 1);

    static final Field MR_LOCAL_KEY = new Field("ibv_mr", "lkey", 36, 4);
    static final Field MR_REMOTE_KEY = new Field("ibv_mr", "rkey", 40, 4);

    static final long AH_ATTR_BYTES = 32;
    static final Field AH_GID_INDEX = new Field("ibv_ah_attr", "grh.sgid_index", 20, 1);
    static final Field AH_HOP_LIMIT = new Field("ibv_ah_attr", "grh.hop_limit", 21, 1);
    static final Field AH_TRAFFIC_CLASS = new Field("ibv_ah_attr", "grh.traffic_class", 22, 1);
    static final Field AH_SERVICE_LEVEL = new Field("ibv_ah_attr", "sl", 26, 1);
    static final Field AH_IS_GLOBAL = new Field("ibv_ah_attr", "is_global", 29, 1);
    static final Field AH_PORT = new Field("ibv_ah_attr", "port_num", 30, 1);

    static final long OBJECT_BYTES = 112;
    static final Field OBJECT_AH = new Field("mlx5dv_obj", "ah", 80, 16);
    static final Field OBJECT_PD = new Field("mlx5dv_obj", "pd", 96, 16);
    static final long OBJECT_OUT_BYTES = 16;
    static final Field PD_NUMBER = new Field("mlx5dv_pd", "pdn", 0, 4);
    static final Field ADDRESS_VECTOR = new Field("mlx5dv_ah", "av", 0, 8);
    static final Field VECTOR_MAC = new Field("mlx5_wqe_av", "rmac", 20, 6);

    static final Field UAR_REGISTER = new Field("mlx5dv_devx_uar", "reg_addr", 0, 8);
    static final Field UAR_PAGE = new Field("mlx5dv_devx_uar", "page_id", 16, 4);
    static final Field UMEM_NUMBER = new Field("mlx5dv_devx_umem", "umem_id", 0, 4);

    static final long UMEM_IN_BYTES = 48;
    static final Field UMEM_IN_SIZE = new Field("mlx5dv_devx_umem_in", "size", 8, 8);
    static final Field UMEM_IN_ACCESS = new Field("mlx5dv_devx_umem_in", "access", 16, 4);
    static final Field UMEM_IN_PAGES = new Field("mlx5dv_devx_umem_in", "pgsz_bitmap", 24, 8);
    static final Field UMEM_IN_MASK = new Field("mlx5dv_devx_umem_in", "comp_mask", 32, 8);
    static final Field UMEM_IN_DMABUF = new Field("mlx5dv_devx_umem_in", "dmabuf_fd", 40, 4);

    private RdmaStructs() {}

    /**
     * A field.
     *
     * @param struct its structure in C
     * @param name its name there
     * @param at bytes from the structure's beginning
     * @param numBytes its size
     */
    record Field(String struct, String name, long at, long numBytes) {
        long get(MemorySegment memory) {
            return switch ((int) numBytes) {
                case 1 -> Byte.toUnsignedLong(memory.get(ValueLayout.JAVA_BYTE, at));
                case 2 -> Short.toUnsignedLong(memory.get(ValueLayout.JAVA_SHORT, at));
                case 4 -> Integer.toUnsignedLong(memory.get(ValueLayout.JAVA_INT, at));
                case 8 -> memory.get(ValueLayout.JAVA_LONG, at);
                default -> throw new IllegalStateException(this + " is not a number");
            };
        }

        void set(MemorySegment memory, long value) {
            switch ((int) numBytes) {
                case 1 -> memory.set(ValueLayout.JAVA_BYTE, at, (byte) value);
                case 4 -> memory.set(ValueLayout.JAVA_INT, at, (int) value);
                case 8 -> memory.set(ValueLayout.JAVA_LONG, at, value);
                default -> throw new IllegalStateException(this + " is not a number");
            }
        }
    }
}
