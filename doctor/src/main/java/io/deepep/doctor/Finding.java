package io.deepep.doctor;

import java.util.List;

/**
 * The result of one check.
 *
 * @param topic the group of checks that it belongs to
 * @param item what was checked
 * @param status the state of the item
 * @param detail what was found
 * @param cure the command or setting that solves the problem; empty if there is none
 */
public record Finding(String topic, String item, Status status, String detail, String cure) {
    /** The state of a checked item. */
    public enum Status {
        /** Present and usable. */
        OK,
        /** For information only. */
        INFO,
        /** Works, but slowly or not with everything. */
        WARN,
        /** A mode cannot run because of it. */
        MISSING
    }

    static Finding ok(String topic, String item, String detail) {
        return new Finding(topic, item, Status.OK, detail, "");
    }

    static Finding info(String topic, String item, String detail) {
        return new Finding(topic, item, Status.INFO, detail, "");
    }

    static Finding warn(String topic, String item, String detail, String cure) {
        return new Finding(topic, item, Status.WARN, detail, cure);
    }

    static Finding missing(String topic, String item, String detail, String cure) {
        return new Finding(topic, item, Status.MISSING, detail, cure);
    }

    boolean isOk() {
        return status == Status.OK;
    }

    /** Whether it is missing, and one of these, given as TOPIC/ITEM. */
    boolean isMissing(List<String> names) {
        return status == Status.MISSING && names.contains(topic + "/" + item);
    }
}
