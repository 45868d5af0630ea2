package io.deepep.cuda.nvshmem;

/** Some PEs of the world, numbered from 0. */
public final class NvshmemTeam extends NvshmemPart {
    private final int handle;
    private final int pe;
    private final int numPes;

    NvshmemTeam(Nvshmem nvshmem, int handle, int pe, int numPes) {
        super(nvshmem);
        this.handle = handle;
        this.pe = pe;
        this.numPes = numPes;
    }

    /** What device functions take: {@code nvshmem_team_t}. */
    public int handle() {
        return handle;
    }

    /** This PE's number in the team. */
    public int pe() {
        return pe;
    }

    /** PEs of the team. */
    public int numPes() {
        return numPes;
    }

    @Override
    String releaseCall() {
        return "nvshmem_team_destroy";
    }

    @Override
    void releaseIn(NvshmemLibrary library) {
        library.teamDestroy(handle);
    }
}
