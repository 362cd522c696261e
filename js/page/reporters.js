/**
 * How apps report to an agent in their own page: by functions that the agent has put there. These
 * are their names, by the protocol's names of the handlers: those that the protocol names, those of
 * its guides, and one that its samples call.
 * @type {Record<'Notification' | 'Progress' | 'CapabilitiesChanged' | 'Elicitation', string[]>}
 */
export const REPORTERS = {
  Notification: ['__abp_notification', '__abpOnNotification', '__abp_notify'],
  Progress: ['__abp_progress', '__abpOnProgress'],
  CapabilitiesChanged: ['__abp_capabilities_changed', '__abpOnCapabilitiesChanged'],
  Elicitation: ['__abp_elicitation', '__abpOnElicitation'],
};
