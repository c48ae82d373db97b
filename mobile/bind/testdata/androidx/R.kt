package org.heddle.phones

object R {
    object raw {
        const val plan = 1
    }
}
