import Foundation
import Security

/// Keeps values in the Keychain of this device: readable after the first unlock, in no backup, and on no other phone.
public final class KeychainStore: Store {
    public init() {}

    private func query(_ key: String) -> [CFString: Any] {
        [kSecClass: kSecClassGenericPassword, kSecAttrService: "heddle", kSecAttrAccount: key]
    }

    public func get(_ key: String) throws -> Data? {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query(key).merging([kSecReturnData: true]) { $1 } as CFDictionary, &found)
        switch status {
        case errSecSuccess: return found as? Data
        case errSecItemNotFound: return nil
        default: throw NSError(domain: NSOSStatusErrorDomain, code: Int(status)) // such as before the first unlock
        }
    }

    public func put(_ key: String, _ value: Data) throws {
        SecItemDelete(query(key) as CFDictionary)
        let item = query(key).merging([kSecValueData: value,
                                       kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly]) { $1 }
        let status = SecItemAdd(item as CFDictionary, nil)
        if status != errSecSuccess {
            throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
        }
    }
}
