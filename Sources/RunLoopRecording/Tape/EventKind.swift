/// The kinds of events on a tape, by their numbers. A reading of the clock has none: its first byte is above all kinds.
enum EventKind: UInt8 {
    // The driver, and mail.
    case wait = 1
    case foundMail, tookMail, refused, decided
    case check, watch, watchWallClock
    // The world.
    case wallTime, randomNumber, makeThread, lookUp, answer, end
    // Descriptors and sockets.
    case read, write, send, sendPieces
    case isSocket, prepare, close, openReserve, socket, setOption, option, bind, listen, accept, connect
    case localAddress, peerAddress, hasInput, endWriting, unsentOutput, resetWhenClosed
    // Datagrams.
    case datagramSocket, receiveDatagrams, sendDatagrams, takeQueuedError, changeMembership
    // Files.
    case socketFile, setPermissions, setPermissionsAt, open, lock, unlock, leads, readAt, writeAt, truncate, sync, map
    case contentsOfFile, size
    case exists, rename, removeFile, createDirectory, removeDirectory, contentsOfDirectory, syncDirectory
    case openFileWatcher, watchFile, unwatchFile
    // Children.
    case pipe, duplicate, start, openProcess, sendSignal, kill, state, reapLater
    // The process.
    case processIdentifier, monotonicMicroseconds, environment, variable, removeVariable, user
    case countSignal, takeSignals, ignoreSignal, openNotifySocket, notify

    /// The kinds of the call's arguments on the tape.
    var arguments: [Argument.Kind] {
        switch self {
        case .wait, .foundMail, .tookMail, .refused, .decided, .watchWallClock, .wallTime, .randomNumber, .end,
            .openReserve, .openFileWatcher, .pipe, .processIdentifier, .monotonicMicroseconds, .environment,
            .openNotifySocket:
            []
        case .answer, .check, .read, .isSocket, .prepare, .close, .socket, .accept, .localAddress, .peerAddress,
            .hasInput, .endWriting, .unsentOutput, .resetWhenClosed, .datagramSocket, .receiveDatagrams,
            .takeQueuedError, .lock, .unlock, .sync, .map, .size, .duplicate, .openProcess, .countSignal, .takeSignals,
            .ignoreSignal:
            [.number]
        case .readAt, .write, .send, .sendPieces, .listen, .setPermissions, .sendSignal, .kill, .reapLater, .truncate,
            .unwatchFile:
            [.number, .number]
        case .option, .state, .writeAt: [.number, .number, .number]
        case .watch, .setOption: [.number, .number, .number, .number]
        case .makeThread, .lookUp, .socketFile, .exists, .removeFile, .createDirectory, .removeDirectory,
            .contentsOfDirectory, .syncDirectory, .variable, .removeVariable, .user:
            [.text]
        case .rename: [.text, .text]
        case .open, .leads, .contentsOfFile: [.text, .number]
        case .watchFile: [.text, .number, .number]
        case .bind, .connect, .setPermissionsAt: [.number, .text]
        case .changeMembership: [.number, .number, .text, .text]
        case .sendDatagrams: [.number, .number, .digest]
        case .notify: [.number, .digest, .digest]
        case .start: [.text, .digest]
        }
    }
}

/// A value that can be an argument of a call as it is.
protocol TapedArgument {
    var argument: Argument { get }
}

extension TapedArgument where Self: BinaryInteger {
    var argument: Argument { .number(Int(self)) }
}

extension Int: TapedArgument {}
extension Int32: TapedArgument {}
extension UInt32: TapedArgument {}
extension String: TapedArgument {
    var argument: Argument { .text(self) }
}

/// An argument of a call.
enum Argument {
    enum Kind {
        case number, text, digest
    }

    case number(Int)
    case text(String)
    case digest(UnsafeRawBufferPointer)

    static func number(_ number: Int32) -> Argument { .number(Int(number)) }

    /// Encodes arguments as a tape has them.
    static func encode(_ arguments: [Argument]) -> [UInt8] {
        var bytes = ByteEncoder()
        for argument in arguments {
            switch argument {
            case .number(let number): bytes.put(number)
            case .text(let text): bytes.put(text)
            case .digest(let content):
                bytes.put(content.count)
                bytes.put(fixed: TapeCheck.digest(content))
            }
        }
        return bytes.bytes
    }
}
