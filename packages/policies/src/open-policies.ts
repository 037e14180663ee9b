import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  errorText,
  invalid,
  knownFields,
  noteRelease,
  oneOf,
  SluiceError,
  type Store,
} from '@sluice/core'
import { LivePolicySet } from './live-policy-set.ts'
import { PolicySources } from './policy-sources.ts'
import { type Kill, kills } from './versions/layer.ts'
import type { VersionObservers } from './versions/version-switch.ts'

/** The environment variable of the kill switch, which works without a store. */
const killVariable = 'SLUICE_KILL_SWITCH'

/** Options of `openPolicies`. */
export interface OpenPoliciesOptions extends VersionObservers {
  /** The policy file, in YAML or JSON. */
  file: string
  /**
   * Store of changes at run time, from which the processes of a fleet learn of them: the store of
   * the counts.
   * @default none: the file alone is in force, and nothing else can be changed
   */
  store?: Store | undefined
  /** Tells the policies of several applications on one store apart. @default 'default' */
  name?: string | undefined
}

/**
 * Opens a policy file, and watches it and the store from then on. It is async: await it.
 * @example
 * const policies = await openPolicies({ file: 'sluice.yaml', store })
 * app.use(rateLimit({ policies, store }))
 * @throws SluiceError that lists what is wrong with the file by line and column
 */
export async function openPolicies(options: OpenPoliciesOptions): Promise<LivePolicySet> {
  noteRelease('@sluice/policies')
  knownFields(options, 'openPolicies', ['file', 'store', 'name', 'onRefused', 'onVersion'])
  const { file, store, name = 'default', onRefused, onVersion } = options
  if (typeof file !== 'string' || file === '') {
    throw invalid({ option: 'file' }, file, `the path of a policy file, such as 'sluice.yaml'`)
  }
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name)) {
    throw invalid({ option: 'name' }, name, `1 to 64 letters, digits, '.', '_' and '-'`)
  }
  if (store && !store.documents) {
    const legal = 'a store that keeps documents, such as redisStore(client)'
    throw invalid({ option: 'store' }, store.name ?? store, legal)
  }
  const sources = new PolicySources({
    documents: store?.documents,
    name,
    fileName: basename(file),
    readFile: () =>
      readFile(file, 'utf8').catch((cause: unknown): never => {
        const message = `${basename(file)} cannot be read: ${errorText(cause)}`
        throw new SluiceError('SLUICE_POLICY_FILE', message, { cause })
      }),
    kill: killOfEnvironment(),
    onRefused,
    onVersion,
  })
  await sources.open()
  return new LivePolicySet(sources)
}

function killOfEnvironment(): Kill | undefined {
  const value = process.env[killVariable]
  return value === undefined || value === ''
    ? undefined
    : oneOf(value, { option: killVariable }, kills)
}
