/** A process group for ranks in several processes, found by {@code io.deepep} at run time. */
@SuppressWarnings("requires-automatic") // JGroups has no descriptor
module io.deepep.communicator {
    requires io.deepep;
    requires org.jgroups;
    // What JGroups needs and, as an automatic module, cannot say.
    requires java.management;
    requires java.naming;
    requires java.xml;

    // JGroups makes protocols and sets their fields by reflection.
    opens io.deepep.communicator to
            org.jgroups;

    provides io.deepep.spi.CommunicatorProvider with
            io.deepep.communicator.ProcessCommunicatorProvider;
}
