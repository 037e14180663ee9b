import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  type Documents,
  errorText,
  invalid,
  noteRelease,
  type Option,
  type OptionsOf,
  observersOption,
  oneOf,
  type RequiredOption,
  readOptions,
  SluiceError,
  type Store,
  textOption,
} from '@sluice/core'
import { LivePolicySet } from './live-policy-set.ts'
import { PolicySources } from './policy-sources.ts'
import { kills } from './versions/layer.ts'
import type { VersionObservers } from './versions/version.ts'

class PoliciesTable {
  /** The policy file, in YAML or JSON. */
  file: RequiredOption<string> = (file, option) => {
    if (typeof file === 'string' && file !== '') return file
    throw invalid({ option }, file, `the path of a policy file, such as 'sluice.yaml'`)
  }
  /**
   * Store through which the processes of a fleet share changes made at run time: the store of the
   * counts.
   * @default none: only the file applies, and nothing else can be changed
   */
  store?: Option<Store, Documents | undefined> = (store, option) => {
    if (store === undefined || store?.documents) return store?.documents
    const legal = 'a store that keeps documents, such as redisStore(client)'
    throw invalid({ option }, store.name ?? store, legal)
  }
  /** Distinguishes the policies of several applications on one store. @default 'default' */
  name?: Option<string, string> = textOption(
    'default',
    /^[\w.-]{1,64}$/,
    `1 to 64 letters, digits, '.', '_' and '-'`,
  )
  /** An object with `onRefused` or `onVersion`, or a list of such objects. @default none */
  observers?: Option<VersionObservers | readonly VersionObservers[], readonly VersionObservers[]> =
    observersOption<VersionObservers>(['onRefused', 'onVersion'])
}

/** Options of `openPolicies`. */
export type OpenPoliciesOptions = OptionsOf<PoliciesTable>

/**
 * Opens a policy file, and watches it and the store. Await the result.
 * @example
 * const policies = await openPolicies({ file: 'sluice.yaml', store })
 * app.use(rateLimit({ policies, store }))
 * @throws SluiceError that lists the file's mistakes by line and column
 */
export async function openPolicies(options: OpenPoliciesOptions): Promise<LivePolicySet> {
  noteRelease('@sluice/policies')
  const settings = readOptions(new PoliciesTable(), options, 'openPolicies')
  const { file, store } = settings
  const fileName = basename(file)
  // This switch works without a store.
  const kill = process.env.SLUICE_KILL_SWITCH
  const sources = new PolicySources({
    ...settings,
    documents: store,
    fileName,
    readFile: () =>
      readFile(file, 'utf8').catch((cause: unknown): never => {
        const message = `${fileName} cannot be read: ${errorText(cause)}`
        throw new SluiceError('SLUICE_POLICY_FILE', message, { cause })
      }),
    kill: kill ? oneOf(kill, { option: 'SLUICE_KILL_SWITCH' }, kills) : undefined,
  })
  await sources.open()
  return new LivePolicySet(sources)
}
