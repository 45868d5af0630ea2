package io.deepep.communicator;

import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Keeps JGroups from logging: what goes wrong is thrown or shows in the membership, the lines would
 * only repeat it.
 */
final class Quiet {
    /** Held here, as the log manager forgets the level of a logger that nobody holds. */
    private static final Logger JGROUPS = Logger.getLogger("org.jgroups");

    private Quiet() {}

    /** Unless the application has configured that logger itself. */
    static void jgroups() {
        if (JGROUPS.getLevel() == null) {
            JGROUPS.setLevel(Level.OFF);
        }
    }
}
