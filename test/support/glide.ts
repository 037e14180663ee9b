// Valkey GLIDE without its log, which writes each error reply that a test asks for.
import { Logger } from '@valkey/valkey-glide'

Logger.init('off')

export { GlideClient, GlideClusterClient, ProtocolVersion } from '@valkey/valkey-glide'
