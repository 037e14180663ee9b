import express from 'express'
import { describeBehaviours } from '../adapters/adapter-conformance.ts'
import { expressDriver } from '../adapters/drivers/express-driver.ts'
import { admission } from './behaviours/admission.ts'
import { admissionKeys } from './behaviours/admission-keys.ts'
import { admissionOverflow } from './behaviours/admission-overflow.ts'

/** What no framework changes, and needs a server. It runs on one of them. */
describeBehaviours(expressDriver('Express 5', express), {
  admission,
  admissionKeys,
  admissionOverflow,
})
