package org.heddle.phones

import java.io.File
import java.io.FileOutputStream
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec
import mobile.Store

/** Keeps values in files that a key of the Keystore encrypts (AES-256-GCM). */
class SealedStore(private val directory: File, private val key: SecretKey) : Store {
    override fun get(name: String): ByteArray? {
        val file = File(directory, name)
        if (!file.exists()) {
            return null
        }
        val sealed = file.readBytes()
        val cipher = Cipher.getInstance(AES)
        cipher.init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(8 * TAG, sealed, 0, NONCE))
        cipher.updateAAD(name.toByteArray())
        return cipher.doFinal(sealed, NONCE, sealed.size - NONCE)
    }

    override fun put(name: String, value: ByteArray) {
        val cipher = Cipher.getInstance(AES)
        cipher.init(Cipher.ENCRYPT_MODE, key) // the Keystore draws the nonce
        cipher.updateAAD(name.toByteArray())
        val sealed = cipher.iv + cipher.doFinal(value)
        directory.mkdirs()
        val next = File(directory, "$name.new")
        FileOutputStream(next).use {
            it.write(sealed)
            it.fd.sync()
        }
        check(next.renameTo(File(directory, name))) { "$name cannot be written" }
    }

    private companion object {
        const val AES = "AES/GCM/NoPadding"
        const val NONCE = 12 // bytes
        const val TAG = 16
    }
}
