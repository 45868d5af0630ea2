package io.deepep.doctor;

import io.deepep.doctor.Finding.Status;

/**
 * Something that is checked.
 *
 * @param topic the group of checks that it belongs to
 * @param item its name in the group
 */
record Check(String topic, String item) {
    Finding ok(String detail) {
        return new Finding(topic, item, Status.OK, detail, "");
    }

    Finding info(String detail) {
        return new Finding(topic, item, Status.INFO, detail, "");
    }

    Finding warn(String detail, String cure) {
        return new Finding(topic, item, Status.WARN, detail, cure);
    }

    Finding missing(String detail, String cure) {
        return new Finding(topic, item, Status.MISSING, detail, cure);
    }

    @Override
    public String toString() {
        return topic + " " + item;
    }
}
