package io.deepep.cuda.topology;

/** What a NIC's port speaks. Ports of different link layers cannot reach each other. */
public enum LinkLayer {
    /** InfiniBand. */
    INFINIBAND("InfiniBand"),
    /** RDMA over Converged Ethernet. */
    ROCE("RoCE");

    private final String text;

    LinkLayer(String text) {
        this.text = text;
    }

    @Override
    public String toString() {
        return text;
    }
}
