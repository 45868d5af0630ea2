/** A process group for ranks in several processes, found by {@code io.deepep} at run time. */
@SuppressWarnings("requires-automatic") // JGroups has no descriptor
module io.deepep.communicator {
    requires io.deepep;
    requires org.jgroups;
    // What JGroups lists threads with when it has too few and, as an automatic module, cannot say.
    requires java.management;

    // JGroups makes protocols and sets their fields by reflection.
    opens io.deepep.communicator to
            org.jgroups;

    provides io.deepep.spi.CommunicatorProvider with
            io.deepep.communicator.ProcessCommunicatorProvider;
}
